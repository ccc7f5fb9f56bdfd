//! From bytes to an object in the shape of its schema.
