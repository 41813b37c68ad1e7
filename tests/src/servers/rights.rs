use super::Redis;
use crate::project::files_in;

/// The words after `ACL SETUSER locks` in the documentation of `palisade::redis`, and a password.
///
/// # Panics
/// If the documentation does not have them.
pub fn documented_rights() -> Vec<String> {
    let pages = files_in("lock-services/redis/src", "md");
    let page = pages.iter().find(|page| page.path.ends_with("servers.md"));
    let words = page.and_then(|page| {
        let (_, rest) = page.text.split_once("ACL SETUSER locks")?;
        let (words, _) = rest.split_once("```")?;
        Some(words.replace(">PASSWORD", ">sesame"))
    });
    let Some(words) = words else {
        panic!("servers.md does not say which rights are needed");
    };
    words.split_whitespace().map(String::from).collect()
}

impl Redis {
    /// Creates a user with the documented rights, plus changes such as `-info`. Returns its URL.
    ///
    /// # Panics
    /// If the server refuses.
    pub async fn allow_documented(&self, changes: &str) -> String {
        let rights = documented_rights();
        let mut command = vec!["ACL", "SETUSER", "locks", "reset"];
        command.extend(rights.iter().map(String::as_str));
        command.extend(changes.split_whitespace());
        let () = self.command(&command).await;
        format!("redis://locks:sesame@{}", self.address())
    }
}
