// SPDX-License-Identifier: Apache-2.0
//! Writes the events that `weft inspect --dump --order time` prints, again and again until there are N, in dial9's
//! format: weft-bench-dial9 OUT N < DUMP. A kind of event with so many fields is a schema. Prints how many there are.
use dial9_trace_format::encoder::Encoder;
use dial9_trace_format::TraceEvent;
use std::io::BufRead;

macro_rules! event {
    ($name:ident $(, $field:ident)*) => {
        #[derive(TraceEvent)]
        struct $name {
            #[traceevent(timestamp)]
            timestamp_ns: u64,
            stream: u64,
            kind: u64,
            $($field: u64,)*
        }
    };
}
event!(Event0);
event!(Event1, a);
event!(Event2, a, b);
event!(Event3, a, b, c);
event!(Event4, a, b, c, d);

fn write(enc: &mut Encoder, line: &[u64], later_ns: u64) {
    let (timestamp_ns, stream, kind) = (line[0] + later_ns, line[1], line[2]);
    match line[3..] {
        [] => enc.write(&Event0 { timestamp_ns, stream, kind }),
        [a] => enc.write(&Event1 { timestamp_ns, stream, kind, a }),
        [a, b] => enc.write(&Event2 { timestamp_ns, stream, kind, a, b }),
        [a, b, c] => enc.write(&Event3 { timestamp_ns, stream, kind, a, b, c }),
        [a, b, c, d, ..] => enc.write(&Event4 { timestamp_ns, stream, kind, a, b, c, d }),
    }
    .expect("room");
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let wanted: usize = args[2].parse().expect("a number of events");
    let lines: Vec<Vec<u64>> = std::io::stdin()
        .lock()
        .lines()
        .map(|line| line.expect("text").split_whitespace().filter_map(|word| word.parse().ok()).collect())
        .filter(|line: &Vec<u64>| line.len() >= 3)
        .collect();
    assert!(!lines.is_empty(), "no events");
    let span_ns = lines[lines.len() - 1][0] - lines[0][0] + 1_000_000;
    let mut enc = Encoder::new();
    let mut n = 0;
    while n < wanted {
        for line in &lines {
            write(&mut enc, line, (n / lines.len()) as u64 * span_ns);
        }
        n += lines.len();
    }
    std::fs::write(&args[1], enc.finish()).expect("a file that can be written");
    println!("{n}");
}
