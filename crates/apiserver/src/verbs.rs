//! What can be asked of a resource, one file a verb.

mod admit;
mod allocate;
mod binding;
mod collection;
mod create;
mod delete;
mod escalation;
mod eviction;
mod get;
mod list;
mod namespace;
mod patch;
mod priority;
mod render;
mod review;
mod scale;
mod token;
mod update;
mod watch;
mod write;

pub(crate) use delete::is_finished;

use http::Method;

use crate::exchange::{Exchange, Reply};
use crate::resource::Part;
use crate::status::{Outcome, Status};

/// Carries out a request.
pub(crate) async fn dispatch(ex: &Exchange<'_>) -> Outcome<Reply> {
    let named = !ex.target.name.is_empty();
    match (ex.method.clone(), ex.target.subresource.as_str()) {
        (method, "") => plain(ex, method, named).await,
        (method, "status") if ex.resource.status => match method {
            Method::GET => get::get(ex),
            Method::PUT => update::put(ex, Part::Status).await,
            Method::PATCH => patch::patch(ex, Part::Status).await,
            _ => Err(not_allowed()),
        },
        (method, "scale") if ex.resource.scale.is_some() => scale::scale(ex, method).await,
        (method, other) if ex.resource.subresources.contains(&other) => {
            subresource(ex, method, other).await
        }
        _ if ex.resource.custom => Err(ex.not_found(&ex.target.name)),
        _ => Err(Box::new(Status::no_such_resource())),
    }
}

async fn plain(ex: &Exchange<'_>, method: Method, named: bool) -> Outcome<Reply> {
    let verb = match (method.as_str(), named) {
        ("GET", true) if ex.target.watch => "watch",
        ("GET", true) => "get",
        ("GET", false) => "list",
        ("POST", false) => "create",
        ("PUT", true) => "update",
        ("PATCH", true) => "patch",
        ("DELETE", true) => "delete",
        ("DELETE", false) => "deletecollection",
        _ => return Err(not_allowed()),
    };
    if !ex.resource.verbs.contains(&verb) {
        // Of a definition that is going only creation is refused; discovery shows less.
        if !ex.resource.custom {
            return Err(not_allowed());
        }
        if verb == "create" {
            return Err(create::refuse_terminating(ex));
        }
    }
    match verb {
        "get" => get::get(ex),
        "list" | "watch" => list::list(ex),
        "create" if ex.resource.verbs.len() == 1 => review::review(ex),
        "create" => create::create(ex).await,
        "update" => update::put(ex, Part::Main).await,
        "patch" => patch::patch(ex, Part::Main).await,
        "delete" => delete::delete(ex).await,
        _ => collection::delete_collection(ex).await,
    }
}

async fn subresource(ex: &Exchange<'_>, method: Method, name: &str) -> Outcome<Reply> {
    match (name, method) {
        ("eviction", Method::POST) => eviction::evict(ex).await,
        ("token", Method::POST) => token::token(ex),
        ("binding", Method::POST) => binding::bind(ex).await,
        ("finalize", Method::PUT) => namespace::finalize(ex).await,
        ("ephemeralcontainers" | "resize" | "approval", Method::GET) => get::get(ex),
        ("ephemeralcontainers" | "resize" | "approval", Method::PUT) => {
            update::put(ex, Part::Main).await
        }
        ("ephemeralcontainers" | "resize" | "approval", Method::PATCH) => {
            patch::patch(ex, Part::Main).await
        }
        _ => Err(not_allowed()),
    }
}

fn not_allowed() -> Box<Status> {
    Box::new(Status::method_not_allowed_here())
}
