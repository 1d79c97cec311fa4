use std::sync::mpsc::channel;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

fn tell(what: &str, at: SystemTime) {
    let since = at.duration_since(UNIX_EPOCH).unwrap();
    println!("{} {}.{:09}", what, since.as_secs(), since.subsec_nanos());
}

fn main() {
    tell("now", SystemTime::now());
    tell("now", std::thread::spawn(SystemTime::now).join().unwrap());
    let (_keep, never) = channel::<()>();
    let began = Instant::now();
    let _ = never.recv_timeout(Duration::from_millis(200));
    println!("waited {:.3} 0.200", began.elapsed().as_secs_f64());
    let began = Instant::now();
    std::thread::sleep(Duration::from_millis(200));
    println!("waited {:.3} 0.200", began.elapsed().as_secs_f64());
    let path = std::env::temp_dir().join(format!("rust-{}", std::process::id()));
    std::fs::write(&path, "x").unwrap();
    tell("file", std::fs::metadata(&path).unwrap().modified().unwrap());
    let _ = std::fs::remove_file(path);
}
