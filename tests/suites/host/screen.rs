//! A person's terminal: what is shown to who attaches by the words that the product prints.

use std::{
    fs::File,
    io::Read,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
};

use nix::pty::{Winsize, openpty};

use crate::rig::{Host, clean, text};

/// An attached terminal; detached when dropped.
pub(crate) struct Screen {
    child: Child,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Screen {
    /// Runs `tmux attach -t =NAME` at a terminal of its own.
    pub(crate) fn attach(host: &Host, name: &str) -> Self {
        let window = Winsize { ws_row: 30, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(Some(&window), None).unwrap();
        let mut command = Command::new("tmux");
        clean(&mut command, host.folder.path()).env("TERM", "xterm-256color");
        command.args(["-L", &host.socket, "attach", "-t", &format!("={name}")]);
        let stdio = || Stdio::from(pty.slave.try_clone().unwrap());
        let child = command.stdin(stdio()).stdout(stdio()).stderr(stdio()).spawn().unwrap();
        let shown = Arc::new(Mutex::new(Vec::new()));
        let mut screen = File::from(pty.master);
        let seen = Arc::clone(&shown);
        // A terminal that nobody reads stops its client; it ends with the client.
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(read @ 1..) = screen.read(&mut chunk) {
                seen.lock().unwrap().extend(&chunk[..read]);
            }
        });
        Self { child, shown }
    }

    /// Everything that was shown so far.
    pub(crate) fn shown(&self) -> String {
        text(&self.shown.lock().unwrap())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}
