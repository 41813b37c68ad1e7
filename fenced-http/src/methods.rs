use std::sync::Arc;

use http::Method;

/// The methods at which a layer looks.
#[derive(Clone, Debug, Default)]
pub(crate) enum Methods {
    /// All methods but those that are known to change nothing. An unknown method, such as `put` in
    /// lower case, may reach a handler that writes.
    #[default]
    AllButReads,
    Only(Arc<[Method]>),
}

impl Methods {
    pub(crate) fn include(&self, method: &Method) -> bool {
        match self {
            Self::AllButReads => {
                ![Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE].contains(method)
            }
            // A router answers HEAD with the handler of GET.
            Self::Only(methods) => {
                methods.contains(method)
                    || (method == Method::HEAD && methods.contains(&Method::GET))
            }
        }
    }
}
