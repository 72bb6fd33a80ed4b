//! `steno serve`: serves the local HTTP API until a signal comes.

use std::time::Duration;

use steno_server::http::openapi;

use crate::args::ServeArgs;
use crate::background_server::{BackgroundServer, PORT};
use crate::failure::{Exit, Outcome};
use crate::output::Output;
use crate::recording::StopSignal;
use crate::settings::Settings;

/// How often to check for a signal.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

pub fn run(args: &ServeArgs, settings: &Settings, output: &mut Output) -> Outcome {
    if args.openapi {
        output.raw_line(openapi().trim_end().as_bytes());
        return Ok(Exit::Done);
    }
    let stop = StopSignal::listen()?;
    let serving = BackgroundServer::start(settings, Some(args.port.unwrap_or(PORT)))?;
    let token_file = settings.store.value.join(serving.token_file());
    let token_file = token_file.display().to_string();
    if args.json {
        let mut announcement =
            serde_json::json!({"url": serving.url(), "token_file": token_file, "pid": std::process::id()});
        if args.link {
            announcement["link"] = serving.link().into();
        }
        output.json_line(&announcement.to_string());
    } else {
        output.line(&format!(
            "serving {}; the token is in `{token_file}`; press Ctrl-C to stop",
            serving.url()
        ));
        if args.link {
            output
                .line(&format!("{} is a login link for one browser, valid for ten minutes", serving.link()));
        }
    }
    output.flush();
    while !stop.is_set() {
        std::thread::sleep(LOOK_INTERVAL);
    }
    Ok(Exit::Done)
}
