use std::pin::Pin;

/// A boxed future. Futures are boxed so that a URL can choose the backend at run time.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
