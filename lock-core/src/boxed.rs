use std::pin::Pin;

/// A boxed future. Boxing allows a backend to be chosen by URL at run time.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
