use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    time::sleep,
};

use super::*;

/// The number of bytes that fit between the two ends of a connection.
const KEPT: usize = 1024;

const STALLED_MAX: Duration = Duration::from_secs(15);

/// Both ends of a connection, and the count of requests under way on it.
fn connection() -> (AnswerStream<DuplexStream>, DuplexStream, UnderWay) {
    let under_way = UnderWay::default();
    let (server, client) = duplex(KEPT);
    (
        AnswerStream::new(server, under_way.clone(), STALLED_MAX),
        client,
        under_way,
    )
}

/// Reads a little, again and again.
async fn sip(client: &mut DuplexStream, every: Duration) {
    loop {
        sleep(every).await;
        client.read_exact(&mut [0; 16]).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_a_little_now_and_then_is_cut_off_after_a_minute() {
    let (mut server, mut client, under_way) = connection();
    let started = Instant::now();
    let answer = vec![0; 1 << 20];
    let sent = tokio::select! {
        biased;
        sent = server.write_all(&answer) => sent,
        () = sip(&mut client, Duration::from_secs(14)) => unreachable!("it goes on"),
    };
    assert_eq!(sent.unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(started.elapsed(), LEAVING_TIME_MAX);
    assert!(!under_way.is_none(), "it has not left");
    drop(server);
    assert!(under_way.is_none());
}

/// A stream may last for ever, because each event leaves before the next one.
/// Catches: a limit that counts from the first event of a stream.
#[tokio::test(start_paused = true)]
async fn a_stream_of_events_goes_on_as_long_as_each_is_taken() {
    let (mut server, mut client, under_way) = connection();
    let event = [0; 2 * KEPT];
    let streaming = async {
        for _ in 0..100 {
            server.write_all(&event).await.unwrap();
            server.flush().await.unwrap();
            assert!(under_way.is_none());
        }
    };
    let reading = async {
        for _ in 0..100 {
            // The client is slow, but not too slow.
            sleep(STALLED_MAX - Duration::from_secs(1)).await;
            client.read_exact(&mut [0; 2 * KEPT]).await.unwrap();
        }
    };
    tokio::join!(streaming, reading);
}
