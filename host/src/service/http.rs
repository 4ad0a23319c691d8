//! HTTP with bounds on sizes, times and concurrency (BND-3), over TCP and over the host's socket.

use std::{sync::Arc, time::Duration};

use axum::Router;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener},
    sync::Semaphore,
};
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

/// How many connections are served at once; more wait in the kernel's queue.
const CONNECTIONS: usize = 512;
/// How long a client may take to send its request head.
const HEAD: Duration = Duration::from_secs(10);
/// The largest request head, in bytes.
const HEAD_BYTES: usize = 64 * 1024;
/// How long open connections may take to end when the host stops.
const DRAIN: Duration = Duration::from_secs(5);

/// Serves until `stop`, then drains.
pub(super) async fn serve_tcp(listener: TcpListener, router: Router, stop: CancellationToken) {
    let accept = || async {
        let (stream, _) = listener.accept().await?;
        // Answers are small and wanted at once. A socket that refuses the option still works.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    };
    serve(accept, router, stop).await;
}

/// Serves until `stop`, then drains.
pub(super) async fn serve_unix(listener: UnixListener, router: Router, stop: CancellationToken) {
    serve(|| async { listener.accept().await.map(|(stream, _)| stream) }, router, stop).await;
}

async fn serve<S, F>(accept: impl Fn() -> F, router: Router, stop: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = std::io::Result<S>>,
{
    let router = router.layer(CatchPanicLayer::new());
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let draining = GracefulShutdown::new();
    loop {
        let slot = tokio::select! {
            () = stop.cancelled() => break,
            slot = Arc::clone(&slots).acquire_owned() => slot,
        };
        let stream = tokio::select! {
            () = stop.cancelled() => break,
            stream = accept() => stream,
        };
        let Ok(stream) = stream else {
            // Out of file handles, or a client that left before it was taken: the next one may fare better.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES);
        let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router.clone()));
        let watched = draining.watch(connection);
        tokio::spawn(async move {
            // A connection that breaks is the client's business.
            let _ = watched.await;
            drop(slot);
        });
    }
    // A stream that never ends must not hold the host.
    let _ = tokio::time::timeout(DRAIN, draining.shutdown()).await;
}
