//! From an article to a staged case by rules (ClinMM-Bench, 4.1.3, 4.1.4, supplements E and F): who the patient is, what
//! was diagnosed, what an image shows, what may be told before the images. Pure: an article in, values out.

pub mod diagnosis;
pub mod examinations;
pub mod figures;
pub mod masking;
pub mod plain;
pub mod presentation;
pub mod reasoning;
pub mod sections;
pub mod series;
pub mod suitability;
pub mod support;
