//! Whether a kind is defined: the API refuses to list what may not be listed before it says that there is no such kind.

use tokio::time::timeout;

use super::{End, News, Watch};

impl Watch {
    /// What follows where a kind may not be listed: it is missing where it is not defined; otherwise it is hidden, which
    /// must not look like "there are none".
    pub(super) async fn forbidden(&self, why: String) -> End {
        if self.is_undefined().await {
            self.tell(News::Missing(why));
            return End::Missing;
        }
        self.tell(News::Hidden(why));
        End::Failed
    }

    /// Whether the API says so; where it says nothing, the kind counts as defined.
    async fn is_undefined(&self) -> bool {
        let kind = &self.key.kind;
        if kind.group.is_empty() {
            return false;
        }
        let version = kind.api_version();
        let served = self.client.list_api_group_resources(&version);
        match timeout(self.times.answer, served).await {
            Ok(Ok(served)) => served.resources.iter().all(|one| one.name != kind.plural),
            Ok(Err(kube::Error::Api(status))) => status.code == 404,
            _ => false,
        }
    }
}
