//! Sessions: their records, their lifecycle, and what is delivered into them.
