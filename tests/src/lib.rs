//! Black-box suites of the-loop, with the fakes and helper programs that they need.

pub mod github;
pub mod model;
