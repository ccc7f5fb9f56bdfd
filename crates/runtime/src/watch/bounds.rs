//! How much is taken in of one kind of a member, so that one that tells without end takes nobody else's memory.
//!
//! A list has so many objects and bytes, over all of its pages; and a text whose parts would take too much room once they are read is
//! not read. Honest servers are far below, and home has no bounds.

use std::num::NonZeroUsize;

use bytes::Bytes;
use http::Response;
use hyper::body::Body;

use super::PAGE;
use crate::channel::{LARGEST_ANSWER, collected, is_too_long};

/// So many bytes may come for each object that may: 256 MB for 100,000.
const EACH: usize = 2_560;
/// So many may come at least: one object may be large.
const LEAST: usize = 16 << 20;

/// So many bytes on a page, as far as that can be told before: read they take ten times as much, and nobody gives back what was taken once.
const ROOM: usize = 1 << 20;
/// However large objects are, so many are on a page.
const FEWEST: u32 = 5;

/// What the parts of a text may take once they are read, besides what is written in them.
const HEAVIEST: usize = 128 << 20;
/// A text that is no longer cannot take more than that, whatever is in it: no part takes more than 128 times what it is written in.
const LIGHT: usize = HEAVIEST / 128;
/// What an object takes, however small: a node of a map has room for eleven.
const MAP: usize = 640;
/// What a list takes, which has room for four at first.
const LIST: usize = 128;
/// What one more in either takes; a list that grows has room for twice as many.
const ENTRY: usize = 64;

/// How much is taken in of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds(NonZeroUsize);

impl Bounds {
    /// So many objects, and what they may be written in; none if none are said.
    pub(crate) fn of(objects: usize) -> Option<Self> {
        NonZeroUsize::new(objects).map(Self)
    }

    /// How many objects.
    pub(super) fn objects(self) -> usize {
        self.0.get()
    }

    /// How many bytes a list may have, and a stream before everything is listed again.
    pub(super) fn bytes(self) -> usize {
        self.objects().saturating_mul(EACH).max(LEAST)
    }
}

/// There is more than is taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum TooMuch {
    /// Of objects.
    #[error("more than {0} objects")]
    Objects(usize),
    /// Of bytes.
    #[error("a list with more than {0} bytes")]
    Bytes(usize),
    /// Of what objects consist of.
    #[error("objects with more in them than is read at once")]
    Parts,
}

impl From<TooMuch> for kube::Error {
    fn from(error: TooMuch) -> Self {
        Self::Service(Box::new(error))
    }
}

/// Of what there is too much, if that is what is wrong.
pub(super) fn too_much(error: &kube::Error) -> Option<TooMuch> {
    match error {
        kube::Error::Service(error) => error.downcast_ref::<TooMuch>().copied(),
        _ => None,
    }
}

/// What has been taken of a list.
#[derive(Debug, Clone)]
pub(super) struct Taken {
    bounds: Option<Bounds>,
    objects: usize,
    bytes: usize,
}

impl Taken {
    /// Nothing yet of a list within these bounds.
    pub(super) fn nothing(bounds: Option<Bounds>) -> Self {
        Self {
            bounds,
            objects: 0,
            bytes: 0,
        }
    }

    /// What one answer says.
    pub(super) async fn text<B>(&mut self, answer: Response<B>) -> Result<Bytes, kube::Error>
    where
        B: Body<Data = Bytes, Error = kube::Error>,
    {
        let Some(bounds) = self.bounds else {
            let text = collected(answer, LARGEST_ANSWER).await?;
            self.bytes = self.bytes.saturating_add(text.len());
            return Ok(text);
        };
        let (all, left) = (bounds.bytes(), bounds.bytes().saturating_sub(self.bytes));
        // Of both bounds the one that is reached first.
        let (most, bound) = if left < LARGEST_ANSWER {
            (left, all)
        } else {
            (LARGEST_ANSWER, LARGEST_ANSWER)
        };
        let text = collected(answer, most).await;
        let text = text.map_err(|error| match error {
            error if is_too_long(&error) => TooMuch::Bytes(bound).into(),
            error => error,
        })?;
        self.bytes = self.bytes.saturating_add(text.len());
        if is_heavy(&text) {
            return Err(TooMuch::Parts.into());
        }
        Ok(text)
    }

    /// How many objects are to be on the next page: fewer where those before were large.
    pub(super) fn next_page(&self) -> u32 {
        let each = self.bytes / self.objects.max(1);
        let many = u32::try_from(ROOM / each.max(1)).unwrap_or(PAGE);
        many.clamp(FEWEST, PAGE)
    }

    /// So many objects were on one page. One without any counts as well: there may be no end of those.
    pub(super) fn page(&mut self, objects: usize) -> Result<(), TooMuch> {
        self.objects = self.objects.saturating_add(objects.max(1));
        match self.bounds {
            // Where there may be so many, the last page may say that there are no more.
            Some(bounds)
                if self.objects > bounds.objects().saturating_add(usize::from(objects == 0)) =>
            {
                Err(TooMuch::Objects(bounds.objects()))
            }
            _ => Ok(()),
        }
    }
}

/// Whether what a text says takes more room than there is, once it is read. It is counted without reading it, and only where it is
/// long enough: what is written between quotes takes no more than it has.
pub(super) fn is_heavy(json: &[u8]) -> bool {
    if json.len() <= LIGHT {
        return false;
    }
    let (mut room, mut is_text, mut is_escaped) = (HEAVIEST, false, false);
    for byte in json {
        let takes = match byte {
            _ if is_escaped => {
                is_escaped = false;
                0
            }
            b'"' => {
                is_text = !is_text;
                0
            }
            b'\\' => {
                is_escaped = is_text;
                0
            }
            _ if is_text => 0,
            b'{' => MAP,
            b'[' => LIST,
            b',' => ENTRY,
            _ => 0,
        };
        match room.checked_sub(takes) {
            Some(left) => room = left,
            None => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use http_body_util::{BodyExt, Full};

    use super::*;

    fn answer(text: String) -> Response<impl Body<Data = Bytes, Error = kube::Error>> {
        let body = Full::new(Bytes::from(text));
        Response::new(body.map_err(|never| -> kube::Error { match never {} }))
    }

    #[tokio::test]
    async fn a_list_has_no_more_objects_and_bytes_than_were_said_over_all_of_its_pages() {
        let bounds = Bounds::of(5);
        let mut taken = Taken::nothing(bounds);
        assert_eq!(taken.page(3), Ok(()));
        assert_eq!(taken.page(2), Ok(()));
        assert_eq!(taken.page(0), Ok(()), "the last one may be empty");
        assert_eq!(taken.page(0), Err(TooMuch::Objects(5)), "but not each");
        let mut taken = Taken::nothing(bounds);
        let half = LEAST / 2;
        for _ in 0..2 {
            let text = taken.text(answer("x".repeat(half))).await.unwrap();
            assert_eq!(text.len(), half);
        }
        let error = taken.text(answer("x".to_owned())).await.unwrap_err();
        assert_eq!(too_much(&error), Some(TooMuch::Bytes(LEAST)));
        // Home has none.
        let mut taken = Taken::nothing(Bounds::of(0));
        assert_eq!(taken.page(1_000_000), Ok(()));
        assert!(taken.text(answer("x".repeat(LEAST + 1))).await.is_ok());
    }

    #[tokio::test]
    async fn of_large_objects_fewer_are_on_a_page() {
        let next = async |objects: usize, bytes: usize| {
            let mut taken = Taken::nothing(None);
            let text = taken.text(answer("x".repeat(bytes))).await.unwrap();
            assert_eq!((text.len(), taken.page(objects)), (bytes, Ok(())));
            taken.next_page()
        };
        assert_eq!(Taken::nothing(None).next_page(), PAGE);
        assert_eq!(next(50, 50 * 2_000).await, PAGE);
        assert_eq!(next(50, 50 << 17).await, 8);
        assert_eq!(next(5, 5 << 20).await, FEWEST);
    }

    /// Half a megabyte of these would be read, and so would be a page of the largest objects.
    #[tokio::test]
    async fn a_page_of_many_small_parts_is_not_read() {
        let list = |item: &str, bytes: usize| {
            let items = item.repeat(bytes / item.len());
            format!("{{\"items\":[{items}0]}}")
        };
        for item in ["0,", "{\"\":0},", "[],", "[0],", "\"\","] {
            let refused = Taken::nothing(Bounds::of(100_000))
                .text(answer(list(item, 16 << 20)))
                .await;
            let error = refused.unwrap_err();
            assert_eq!(too_much(&error), Some(TooMuch::Parts), "{item}");
            assert!(!is_heavy(list(item, LIGHT / 2).as_bytes()), "{item}");
        }
        let text = format!("\"{}\\\"\",", "a,{[".repeat(400_000));
        assert!(!is_heavy(list(&text, 16 << 20).as_bytes()), "quoted");
        let object = format!(
            "{{\"data\":{{{}}}}},",
            "\"key\":\"some value\",".repeat(1_000)
        );
        assert!(!is_heavy(list(&object, 8 << 20).as_bytes()), "usual");
    }
}
