//! People who look at sessions: tmux clients on terminals of their own.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    os::fd::OwnedFd,
    process::{Child, Stdio},
};

use nix::pty::{Winsize, openpty};

use crate::rig::{Rig, wait_for};

/// An attached client; detached when dropped.
pub(crate) struct Client {
    child: Child,
    keyboard: File,
}

impl Client {
    /// Attaches to a session by the words that the runner prints for it, and waits until tmux lists the client.
    pub(crate) async fn attach(rig: &Rig, words: &[String], size: (u16, u16)) -> Self {
        let before = Self::count(rig);
        let window = Winsize { ws_col: size.0, ws_row: size.1, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(Some(&window), None).unwrap();
        let stdio = |end: &OwnedFd| Stdio::from(end.try_clone().unwrap());
        let mut command = std::process::Command::new(Rig::real_tmux());
        command
            .env_clear()
            .envs(&rig.options().environment)
            .env("TERM", "xterm-256color")
            .args(&words[1..])
            .stdin(stdio(&pty.slave))
            .stdout(stdio(&pty.slave))
            .stderr(stdio(&pty.slave));
        let child = command.spawn().unwrap();
        drop(pty.slave);
        let keyboard = File::from(pty.master);
        let mut screen = keyboard.try_clone().unwrap();
        // A terminal that nobody reads stops its client.
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while screen.read(&mut chunk).is_ok_and(|read| read > 0) {}
        });
        wait_for("the attached client", || (Self::count(rig) > before).then_some(())).await;
        Self { child, keyboard }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn count(rig: &Rig) -> usize {
        rig.tmux(&["list-clients", "-F", "#{client_name}"]).lines().filter(|line| !line.is_empty()).count()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}
