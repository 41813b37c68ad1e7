use tokio::sync::mpsc;

use super::{Job, section::LONG_POLL, step::Step, step::tell};
use crate::{
    client::{ClientError, GatewayClient},
    events::Forgery,
    gateway::account_resource,
};

/// The balance that it wants the account to have.
const LOOT: i64 = 0;

/// Tries every forgery on the account, one for each order.
///
/// # Errors
/// When the gateway does not answer, or not as expected.
pub(super) async fn forge(job: Job, mut orders: mpsc::Receiver<()>) -> Result<(), ClientError> {
    let client = GatewayClient::new(job.gateway.clone(), Some(job.client))?;
    // What anybody can get: a genuine token, for an account of its own.
    let own = account_resource(&format!("{}-forger", job.account));
    let lease = loop {
        if let Some(lease) = client.acquire(&own, job.ttl, LONG_POLL).await? {
            break lease;
        }
    };
    let genuine = lease.fencing_token.as_str();
    let target = account_resource(&job.account);
    for forgery in Forgery::ALL {
        let token = forged(forgery, genuine, (&own, &target));
        tell(&Step::Forged { forgery });
        if orders.recv().await.is_none() {
            break;
        }
        let answer = client.write(job.act, &job.account, LOOT, Some(&token));
        tell(&answer.await?.into());
    }
    // False if it has meanwhile run out.
    let _held = client.release(&lease).await?;
    Ok(())
}

/// A header for the target, made from one that is valid for something else. Its number is greater,
/// because a small one would only be stale.
fn forged(forgery: Forgery, genuine: &str, (own, target): (&str, &str)) -> String {
    const ZEROS: &str = "AAAAAAAAAAAAAAAAAAAAAA==";
    let (number, rest) = genuine.split_once(';').unwrap_or((genuine, ""));
    let number = number.parse::<u64>().map_or(1, |number| number + 1);
    let rest = rest.replace(own, target);
    let (claims, signature) = match rest.split_once(";kid=") {
        Some((claims, signature)) => (claims, Some(signature)),
        None => (rest.as_str(), None),
    };
    let key = signature.and_then(|signature| signature.split(';').next());
    match (forgery, signature, key) {
        (Forgery::Altered, Some(signature), _) => format!("{number};{claims};kid={signature}"),
        (Forgery::Invented, _, Some(key)) => format!("{number};{claims};kid={key};sig=:{ZEROS}:"),
        // If nothing is signed, there is nothing to invent but the number.
        _ => format!("{number};{claims}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forgery_has_the_form_of_a_token_and_is_about_the_target() {
        let genuine = "33;res=\"account:mine\";hld=\"aa\";kid=k1;sig=:c2lnbmF0dXJl:";
        let forged = |forgery| forged(forgery, genuine, ("account:mine", "account:yours"));
        let claims = "34;res=\"account:yours\";hld=\"aa\"";
        assert_eq!(forged(Forgery::Unsigned), claims);
        assert_eq!(
            forged(Forgery::Altered),
            format!("{claims};kid=k1;sig=:c2lnbmF0dXJl:")
        );
        assert_eq!(
            forged(Forgery::Invented),
            format!("{claims};kid=k1;sig=:AAAAAAAAAAAAAAAAAAAAAA==:")
        );
    }
}
