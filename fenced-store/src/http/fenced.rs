use fenced_http::Fenced;

use crate::Presented;

impl<'a> From<&'a Fenced> for Presented<'a> {
    fn from(fenced: &'a Fenced) -> Self {
        Self::from(fenced.sequencer())
    }
}
