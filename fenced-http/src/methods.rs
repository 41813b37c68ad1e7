use std::sync::Arc;

use http::Method;

/// Which requests a layer looks at.
#[derive(Clone, Debug, Default)]
pub(crate) enum Methods {
    /// All but those that are known to change nothing. An unknown method, such as `put` in lower
    /// case, might well reach a handler that writes.
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
