//! Files of other people stay as they are.

use super::program::{Place, Running, appears};

/// `~/.kube/config` is where people point, and it is all they have.
#[test]
fn a_kubeconfig_of_somebody_else_is_neither_overwritten_nor_removed() {
    let place = Place::new("files");
    let mine = place.path("home/.kube/config");
    let before = std::fs::read_to_string(&mine).unwrap();
    let file = mine.to_str().unwrap();
    let output = place.run(&["apiserver", "--port", "0", "--kubeconfig-out", file]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("--kubeconfig-out")
            && said.contains(file)
            && said.contains("name another file"),
        "{said}"
    );
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), before);
}

#[test]
fn a_kubeconfig_that_somebody_has_written_over_meanwhile_stays() {
    let place = Place::new("files-later");
    let file = place.path("kubeconfig");
    let server = [
        "apiserver",
        "--port",
        "0",
        "--kubeconfig-out",
        file.to_str().unwrap(),
    ];
    let server = Running::start(&mut place.command(&server), true);
    appears(&file);
    std::fs::write(&file, "mine now").unwrap();
    assert_eq!(server.terminate(), Some(0));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine now");
}

#[test]
fn a_port_in_use_is_said_so() {
    let place = Place::new("port");
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = place.run(&["apiserver", "--port", &port]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    let wanted =
        format!("cannot listen on 127.0.0.1:{port}: port in use; choose another with --port");
    assert!(said.contains(&wanted), "{said}");
}
