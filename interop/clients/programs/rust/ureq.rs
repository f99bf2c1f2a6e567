// ureq: `clients default|platform`, with the roots that are compiled in or those of the platform.
const ECHO: &str = "https://api.test/echo";

fn main() {
    if let Err(error) = try_all() {
        eprintln!("{error:?}");
        std::process::exit(1);
    }
}

fn try_all() -> Result<(), ureq::Error> {
    let agent = if std::env::args().nth(1).as_deref() == Some("platform") {
        let roots = ureq::tls::RootCerts::PlatformVerifier;
        let tls = ureq::tls::TlsConfig::builder().root_certs(roots).build();
        ureq::Agent::config_builder().tls_config(tls).build().into()
    } else {
        ureq::Agent::new_with_defaults()
    };
    for _ in 0..3 {
        let text = agent.get(ECHO).call()?.body_mut().read_to_string()?;
        assert!(text.contains("\"method\":\"GET\""));
    }
    let text = agent.post(ECHO).send("x".repeat(1000))?.body_mut().read_to_string()?;
    assert!(text.contains("\"bytes\":1000"));
    Ok(())
}
