//! A git repository with a server for it: smart HTTP, by `git http-backend` behind a small CGI server.
//!
//! Made for one reader at a time that fetches over plain HTTP, as Flux does; nobody can push.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};

use crate::process::Folder;

/// What the repository is called.
const NAME: &str = "repository";

/// A repository with the branch `main`, and its server; both go with this value.
pub struct Repository {
    folder: Folder,
    port: u16,
    ended: Arc<AtomicBool>,
}

impl Repository {
    /// An empty repository, served on a free port.
    pub fn start() -> Result<Self> {
        let folder = Folder::new("git")?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("serving git")?;
        let port = listener.local_addr()?.port();
        let ended = Arc::new(AtomicBool::new(false));
        let repository = Self {
            folder,
            port,
            ended: ended.clone(),
        };
        repository.git(&["init", "--quiet", "--initial-branch=main"])?;
        let root = repository.folder.path().to_owned();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let root = root.clone();
                // A connection that breaks is the client's to report.
                std::thread::spawn(move || answer(&stream, &root));
            }
        });
        Ok(repository)
    }

    /// Where to clone it from.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/{NAME}/.git", self.port)
    }

    /// Commits a file with this text, or its removal.
    pub fn commit(&self, file: &str, text: Option<&str>) -> Result<()> {
        let path = self.work_tree().join(file);
        match text {
            Some(text) => std::fs::write(&path, text),
            None => std::fs::remove_file(&path),
        }
        .with_context(|| format!("changing {}", path.display()))?;
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "--message", file])
    }

    /// Commits exactly these files, with their texts, and gives the commit this tag.
    pub fn release(&self, tag: &str, files: &BTreeMap<String, String>) -> Result<()> {
        let tree = self.work_tree();
        self.git(&["rm", "-r", "--quiet", "--force", "--ignore-unmatch", "."])?;
        for (file, text) in files {
            let path = tree.join(file);
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        }
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "--allow-empty", "--message", tag])?;
        self.git(&["tag", tag])
    }

    fn work_tree(&self) -> PathBuf {
        self.folder.path().join(NAME)
    }

    fn git(&self, arguments: &[&str]) -> Result<()> {
        std::fs::create_dir_all(self.work_tree())?;
        let output = Command::new("git")
            .args(["-c", "user.name=test", "-c", "user.email=test@localhost"])
            .args(arguments)
            .current_dir(self.work_tree())
            .env("HOME", self.folder.path())
            .output()
            .context("starting git")?;
        if !output.status.success() {
            bail!(
                "git {}: {}",
                arguments.join(" "),
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(())
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // The server looks up when somebody comes.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// One request, as a CGI program wants it.
#[derive(Default)]
struct Request {
    method: String,
    path: String,
    query: String,
    kind: String,
    encoding: String,
    protocol: String,
    body: Vec<u8>,
}

fn answer(stream: &TcpStream, root: &Path) -> Result<()> {
    let request = read(stream)?;
    let mut child = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("HOME", root)
        // The repository may belong to another user.
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .env("REQUEST_METHOD", &request.method)
        .env("PATH_INFO", &request.path)
        .env("QUERY_STRING", &request.query)
        .env("CONTENT_TYPE", &request.kind)
        .env("HTTP_CONTENT_ENCODING", &request.encoding)
        .env("GIT_PROTOCOL", &request.protocol)
        .env("CONTENT_LENGTH", request.body.len().to_string())
        .env("REMOTE_ADDR", "127.0.0.1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("starting git http-backend")?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(&request.body)?;
    }
    let output = child.wait_with_output()?.stdout;
    respond(stream, &output)
}

fn read(stream: &TcpStream) -> Result<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let target = words.next().unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut request = Request {
        method,
        path: path.to_owned(),
        query: query.to_owned(),
        ..Request::default()
    };
    let (mut length, mut is_chunked) = (0, false);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-type" => value.clone_into(&mut request.kind),
            "content-encoding" => value.clone_into(&mut request.encoding),
            "git-protocol" => value.clone_into(&mut request.protocol),
            "content-length" => length = value.parse().context("reading content-length")?,
            "transfer-encoding" => is_chunked = value.eq_ignore_ascii_case("chunked"),
            _ => {}
        }
    }
    if is_chunked {
        request.body = chunks(&mut reader)?;
    } else {
        request.body = vec![0; length];
        reader.read_exact(&mut request.body)?;
    }
    Ok(request)
}

fn chunks(reader: &mut impl BufRead) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let size = usize::from_str_radix(line.trim(), 16).context("reading the size of a chunk")?;
        let mut chunk = vec![0; size + 2];
        reader.read_exact(&mut chunk)?;
        if size == 0 {
            return Ok(body);
        }
        chunk.truncate(size);
        body.append(&mut chunk);
    }
}

/// A CGI answer as one of HTTP.
fn respond(mut stream: &TcpStream, output: &[u8]) -> Result<()> {
    let end = output
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .context("git http-backend gave no headers")?;
    let (head, body) = output.split_at(end);
    let head = String::from_utf8_lossy(head);
    let status = head
        .lines()
        .find_map(|line| line.strip_prefix("Status: "))
        .unwrap_or("200 OK");
    let body = body.get(4..).unwrap_or_default();
    write!(stream, "HTTP/1.1 {status}\r\n")?;
    for line in head.lines().filter(|line| !line.starts_with("Status: ")) {
        write!(stream, "{line}\r\n")?;
    }
    let length = body.len();
    write!(
        stream,
        "Content-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    stream.write_all(body)?;
    Ok(())
}
