//! `steno up`: finds every agent on this machine, archives its files, and follows them.

use steno_disk::{RealDisk, StorePath};
use steno_recorder::sources::SourceLocations;

use crate::args::UpArgs;
use crate::background_server::{BackgroundServer, PORT};
use crate::demo;
use crate::failure::{Failure, Outcome};
use crate::output::{Output, notice};
use crate::recording::{
    self, Follow, ForgottenFiles, ImportPass, StopSignal, check_for_own_sessions, notice_losses,
};
use crate::settings::Settings;

pub fn run(args: &UpArgs, settings: &Settings, output: &mut Output) -> Outcome {
    if !settings.is_demo {
        check_for_own_sessions(settings)?;
    }
    let stop = StopSignal::listen()?;
    let options = args.tailing.options(settings);
    recording::collecting(&args.entries, settings, |entries| {
        let archive = &mut recording::open(settings, entries, ForgottenFiles::Skip)?;
        let mut places =
            if settings.is_demo { sample_places(settings)? } else { recording::places(&[], settings)? };
        recording::leave_out_log(&mut places, &args.entries, settings);
        if settings.is_demo {
            notice(&format!("the sample sessions are in `{}`", settings.store.value.display()));
        }
        if places.homes.is_empty() {
            notice("no agents found on this machine");
        }
        if args.once {
            let pass =
                ImportPass { archive, places: &places, stop: &stop, as_json: args.json, rederives: true };
            let outcome = pass.once(output);
            notice_losses(settings);
            return outcome;
        }
        let serving = if args.no_serve { None } else { Some(serve(args, settings)?) };
        let store_flags = settings.store_flags();
        let outcome =
            Follow { archive, places, stop: &stop, options, store_flags, as_json: args.json }.run(output);
        drop(serving);
        outcome
    })
}

/// Starts the HTTP server. If the default port is taken, any free port is used.
fn serve(args: &UpArgs, settings: &Settings) -> Result<BackgroundServer, Failure> {
    let serving = match args.port {
        Some(port) => BackgroundServer::start(settings, Some(port))?,
        None => BackgroundServer::start(settings, Some(PORT))
            .or_else(|_| BackgroundServer::start(settings, None))?,
    };
    let token_file = settings.store.value.join(serving.token_file());
    notice(&format!("serving {}; the token is in `{}`", serving.url(), token_file.display()));
    Ok(serving)
}

/// Returns the homes of the sample sessions, which are in the store.
fn sample_places(settings: &Settings) -> Result<SourceLocations, Failure> {
    let dir = StorePath::root().below("demo");
    let homes = RealDisk::create(&settings.store.value).and_then(|disk| demo::homes(&disk, &dir));
    let homes = homes.map_err(|error| {
        let dir = settings.store.value.join(dir.as_str());
        Failure::could_not(format!("cannot write the sample sessions to `{}`: {error}", dir.display()))
    })?;
    Ok(SourceLocations { homes, ..SourceLocations::default() })
}
