// SPDX-License-Identifier: Apache-2.0
//! A TCP echo server that records itself.
//!
//!     WEFT_DIR=/tmp/echo cargo run --release --example echo -- 127.0.0.1:7000
//!     weft report /tmp/echo
//!
//! Without WEFT_DIR nothing is recorded. It ends at the end of its standard input (Ctrl-D).
use std::error::Error;
use std::io::Read;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn echo(mut stream: TcpStream) -> std::io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        let n = stream.read(&mut buffer).await?;
        if n == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..n]).await?;
    }
}

async fn listen(listener: TcpListener) -> std::io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        weft_tokio::spawn(echo(stream));
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".into());
    let recorder = weft::Options::new().name("echo").start_env()?;

    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all();
    weft_tokio::attach(&mut builder)?;
    let runtime = builder.build()?;

    let listener = runtime.block_on(TcpListener::bind(address))?;
    println!("{}", listener.local_addr()?);
    let listening = weft_tokio::spawn_on(runtime.handle(), listen(listener));

    std::io::stdin().read_to_end(&mut Vec::new())?;
    listening.abort();
    drop(runtime);
    recorder.close()?;
    Ok(())
}
