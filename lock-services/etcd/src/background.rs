use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

/// Starts a task that works on what is sent to it. It is to end when nothing more can be sent.
pub(super) fn start<T, F>(work: impl FnOnce(UnboundedReceiver<T>) -> F) -> UnboundedSender<T>
where
    F: Future<Output = ()> + Send + 'static,
{
    let (sender, queue) = mpsc::unbounded_channel();
    #[expect(
        clippy::disallowed_methods,
        reason = "it ends soon after the sender is dropped"
    )]
    tokio::spawn(work(queue));
    sender
}
