//! The host's last word before a text and before its return, as the suite plays it.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use async_trait::async_trait;
use the_loop_plugin_api::delivery::{HoldReason, InputGate};

/// A gate that counts how often it is asked.
pub(crate) struct Gate {
    asked: AtomicU32,
    /// The number of times that it says yes before it holds for ever.
    yes: u32,
}

impl Gate {
    /// Always says yes.
    pub(crate) fn open() -> Arc<Self> {
        Arc::new(Self { asked: AtomicU32::new(0), yes: u32::MAX })
    }

    /// Never says yes.
    pub(crate) fn closed() -> Arc<Self> {
        Arc::new(Self { asked: AtomicU32::new(0), yes: 0 })
    }

    /// Says yes before the text; then a dialog opens.
    pub(crate) fn dialog_after_the_text() -> Arc<Self> {
        Arc::new(Self { asked: AtomicU32::new(0), yes: 1 })
    }

    pub(crate) fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl InputGate for Gate {
    async fn check(&self) -> Result<(), HoldReason> {
        let before = self.asked.fetch_add(1, Ordering::SeqCst);
        if before < self.yes { Ok(()) } else { Err(HoldReason::DialogOpen) }
    }
}
