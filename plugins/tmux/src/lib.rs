//! Runner: hosts harness programs in tmux panes.
