//! Histories with calls to the world outside that never happened.

use slipway_sim::history::Asked;

use super::made::Made;

/// The operator says something to a chat, under this name.
fn say(made: &mut Made, id: &str, body: &str) {
    let number = made.history.asked.len() as u64;
    let at = made.now();
    made.history.asked.push(Asked {
        number,
        at,
        replica: "slipway-0-0".to_owned(),
        method: "POST".to_owned(),
        url: "https://chat.test/say".to_owned(),
        id: id.to_owned(),
        body: body.to_owned(),
        fault: None,
        query: None,
        arrived: 1,
        told: Some((at, 200)),
        said: None,
    });
}

/// One bad history for each oracle that is about calls.
pub(super) fn bad(id: &str) -> Option<Made> {
    let mut made = Made::new();
    match id {
        "A1" => {
            say(&mut made, "a", "it begins");
            say(&mut made, "a", "it ends");
        }
        "A2" => (0..121).for_each(|_| say(&mut made, "a", "it begins")),
        _ => return None,
    }
    Some(made)
}
