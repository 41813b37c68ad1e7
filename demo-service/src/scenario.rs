//! The pause scenario: two acts, real processes, and a verdict.

mod act;
mod client_process;
mod hand;
mod play;
mod progress;
mod stage;
mod story;

use std::{fs, io, path::Path};

pub(crate) use self::{
    act::Director,
    hand::{Cue, Hand},
};
use self::{progress::Progress, stage::Stage};
use crate::{
    cli::ScenarioArgs,
    events::{Act, Recorder, Recording},
    report::{self, Scene, Summary},
};
use palisade_cli::{Console, Failure, Interrupts};
use palisade_gateway::wire::millis;

/// Plays the scenario and prints its result.
///
/// # Errors
/// [`Failure::NotAsTold`] if it was played to its end with an unexpected result. Any other failure
/// means that it was not played to its end.
pub(crate) async fn run(args: &ScenarioArgs) -> Result<(), Failure> {
    let mut interrupts = Interrupts::listen().map_err(Failure::machine("listening for signals"))?;
    check_places(args)?;
    let progress = Progress::new(args);
    let recorder = Recorder::new(move |event| progress.tell(event));
    let recording = tokio::select! {
        biased;
        recording = record(args, recorder.clone()) => recording?,
        interrupt = interrupts.next() => return Err(Failure::Stopped {
            interrupt,
            then: "the client processes are ended, too",
        }),
    };
    let mut summary = Summary::of(&recording, millis(recorder.elapsed()));
    let scenes = report::chosen(&recording);
    tell(args, &scenes);
    summary.picture = write_files(args, &recording, &scenes)?;
    conclude(args, &summary)
}

/// Plays all runs on a stage of their own, which is removed afterwards.
async fn record(args: &ScenarioArgs, recorder: Recorder) -> Result<Recording, Failure> {
    let lock = args.lock.in_front_of(args.store.as_ref());
    let stage = Stage::set(&lock, args.store.as_ref(), recorder.clone()).await?;
    progress::announce(args, &stage);
    let director = Director {
        gateway: stage.url(),
        client: stage.client()?,
        recorder: recorder.clone(),
        ttl: args.ttl,
        story: args.story,
        nonce: rand::random(),
    };
    for run in 1..=args.runs {
        for act in Act::BOTH {
            let hand = Hand::Clock(args.pause());
            director.play(run, act, hand).await?;
        }
    }
    let (lock, store) = (stage.lock_kind().to_owned(), stage.store_kind().to_owned());
    stage.strike().await?;
    Ok(Recording {
        lock,
        store,
        ttl_ms: millis(args.ttl),
        pause_ms: millis(args.pause()),
        runs: args.runs,
        schedule: None,
        events: recorder.events(),
    })
}

fn tell(args: &ScenarioArgs, scenes: &[Scene]) {
    let console = progress::console(args);
    console.line("");
    for scene in scenes {
        console.line(report::timeline(scene));
    }
    if !scenes.is_empty() {
        console.line(report::legend());
    }
    let verdicts = if args.json {
        Console::Stderr
    } else {
        Console::Stdout
    };
    for scene in scenes {
        verdicts.line(report::verdict(scene));
    }
}

/// Refuses a folder that does not exist before the scenario is played, and not after it.
fn check_places(args: &ScenarioArgs) -> Result<(), Failure> {
    for path in [&args.svg, &args.record].into_iter().flatten() {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let cannot = |source| Failure::CannotWrite {
            path: path.clone(),
            source,
        };
        let metadata = fs::metadata(folder.unwrap_or(Path::new("."))).map_err(cannot)?;
        if !metadata.is_dir() {
            return Err(cannot(io::ErrorKind::NotADirectory.into()));
        }
    }
    Ok(())
}

/// Writes the requested files, and returns the path of the picture.
fn write_files(
    args: &ScenarioArgs,
    recording: &Recording,
    scenes: &[Scene],
) -> Result<Option<String>, Failure> {
    if let Some(path) = &args.record {
        let json = serde_json::to_string_pretty(recording).map_err(std::io::Error::from);
        write(path, &json.map_err(Failure::machine("writing JSON"))?)?;
    }
    let path = match &args.svg {
        Some(path) => path.clone(),
        None if args.json => return Ok(None),
        None => stage::new_picture_file()?,
    };
    write(&path, &report::picture(scenes))?;
    Ok(Some(path.display().to_string()))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let cannot = |source| Failure::CannotWrite {
        path: path.to_owned(),
        source,
    };
    fs::write(path, text).map_err(cannot)
}

fn conclude(args: &ScenarioArgs, summary: &Summary) -> Result<(), Failure> {
    if args.json {
        let json = serde_json::to_string(summary).map_err(std::io::Error::from);
        Console::Stdout.line(json.map_err(Failure::machine("writing JSON"))?);
    } else if let Some(picture) = &summary.picture {
        Console::Stdout.line(format!("Picture, for a browser: {picture}"));
    }
    if summary.as_told {
        return Ok(());
    }
    Err(Failure::NotAsTold(format!(
        "not as told: of {} runs, act 1 went wrong in {} and act 2 in {}; \
         on a busy machine try a longer --ttl",
        args.runs, summary.unfenced.lost_updates, summary.fenced.lost_updates,
    )))
}
