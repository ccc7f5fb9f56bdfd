//! Istio: `VirtualService`, `DestinationRule`, and the way in which it says which requests are meant.
//!
//! Flagger's users write the latter for every router.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The API group.
pub const GROUP: &str = "networking.istio.io";

/// The version that is written.
pub const VERSION: &str = "v1beta1";

/// `VirtualService`.
pub const VIRTUAL_SERVICE: &str = "VirtualService";

/// Its resource.
pub const VIRTUAL_SERVICES: &str = "virtualservices";

/// `DestinationRule`.
pub const DESTINATION_RULE: &str = "DestinationRule";

/// Its resource.
pub const DESTINATION_RULES: &str = "destinationrules";

/// Which requests are meant: all that is said must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpMatch {
    /// The path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<StringMatch>,
    /// The method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<StringMatch>,
    /// Headers, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, StringMatch>,
    /// Query parameters, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub query_params: BTreeMap<String, StringMatch>,
    /// Labels of whoever asks; of Istio only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub source_labels: BTreeMap<String, String>,
}

/// Which texts are meant; one of the fields is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StringMatch {
    /// This text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<String>,
    /// Texts that begin so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Texts that end so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suffix: Option<String>,
    /// Texts of this form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
}
