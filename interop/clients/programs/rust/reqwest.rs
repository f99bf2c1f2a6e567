// reqwest, with the TLS that Cargo.toml names. The same requests as javascript.mjs makes.
use std::error::Error;
use std::io::Read;
use std::time::Instant;

const API: &str = "https://api.test";

fn main() {
    if let Err(error) = try_all() {
        let mut cause: Option<&dyn Error> = Some(error.as_ref());
        while let Some(one) = cause {
            eprintln!("{one}");
            cause = one.source();
        }
        std::process::exit(1);
    }
}

fn try_all() -> Result<(), Box<dyn Error>> {
    let client = reqwest::blocking::Client::new();
    let echo = format!("{API}/echo");
    for _ in 0..3 {
        assert!(client.get(&echo).send()?.text()?.contains("\"method\":\"GET\""));
    }
    let posted = client.post(&echo).body("x".repeat(1000)).send()?.text()?;
    assert!(posted.contains("\"bytes\":1000"));
    let mut response = client.get(format!("{API}/stream")).send()?;
    let mut times = Vec::new();
    let mut buffer = [0; 4096];
    while response.read(&mut buffer)? > 0 {
        times.push(Instant::now());
    }
    println!("spread {}", (times[times.len() - 1] - times[0]).as_millis());
    Ok(())
}
