//! Media types, and the forms an answer can take.
