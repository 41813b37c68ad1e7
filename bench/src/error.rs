/// Any error that stops a measurement.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
