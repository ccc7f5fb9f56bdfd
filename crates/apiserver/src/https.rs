//! The HTTPS shell.
