//! Who is asking.
