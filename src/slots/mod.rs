//! The 24-slot clinical record: how its values are found, judged and written alike.

pub mod boundaries;
pub mod extract;
pub mod normalise;
pub mod specialty;
