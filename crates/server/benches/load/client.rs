//! As much HTTP as the load takes.

use std::io;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpSocket, TcpStream};

use crate::ServerAddress;

/// A connection that is kept.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    reached: ServerAddress,
}

impl Connection {
    pub(crate) async fn open(reached: &ServerAddress) -> io::Result<Self> {
        Self::with(TcpSocket::new_v4()?, reached).await
    }

    /// Opens a connection that the system keeps little for: who does not read it is felt soon.
    pub(crate) async fn narrow(reached: &ServerAddress) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(4096)?;
        Self::with(socket, reached).await
    }

    async fn with(socket: TcpSocket, reached: &ServerAddress) -> io::Result<Self> {
        let stream = socket.connect(([127, 0, 0, 1], reached.port).into()).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), reached: reached.clone() })
    }

    /// Sends a request, and reads the head of its answer; returns the status and how long the body is.
    pub(crate) async fn send(&mut self, head: &str, body: &str) -> io::Result<(u16, usize)> {
        let (port, token) = (self.reached.port, &self.reached.token);
        let text = format!(
            "{head}\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.write_all(text.as_bytes()).await?;
        let (mut status, mut length, mut line) = (0, 0, String::new());
        loop {
            line.clear();
            if self.stream.read_line(&mut line).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let lower = line.trim_end().to_ascii_lowercase();
            if let Some(rest) = lower.strip_prefix("http/1.1 ") {
                status = rest.split(' ').next().and_then(|code| code.parse().ok()).unwrap_or(0);
            } else if let Some(rest) = lower.strip_prefix("content-length: ") {
                length = rest.parse().unwrap_or(0);
            } else if lower.is_empty() {
                return Ok((status, length));
            }
        }
    }

    pub(crate) async fn body(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await?;
        Ok(body)
    }

    /// Returns the next line, without what ends it; `None` at the end.
    pub(crate) async fn line(&mut self, into: &mut Vec<u8>) -> io::Result<Option<usize>> {
        into.clear();
        let read = self.stream.read_until(b'\n', into).await?;
        Ok(Some(read).filter(|read| *read > 0))
    }
}
