// SPDX-License-Identifier: Apache-2.0
use std::sync::atomic::Ordering;
use std::sync::Arc;

use tokio::runtime::Builder;
#[cfg(tokio_unstable)]
use tokio::runtime::TaskMeta;

use crate::hooks;
use crate::shared::Shared;
use crate::waker::WAIT_STACKS;

type Hook = Arc<dyn Fn() + Send + Sync>;
#[cfg(tokio_unstable)]
type TaskHook = Arc<dyn Fn(&TaskMeta<'_>) + Send + Sync>;

/// Attaches to a runtime's builder: `Attach::new().to(builder)` with default options. Works whether or not a recorder
/// is open yet.
pub fn attach(builder: &mut Builder) -> Result<(), weft::Error> {
    Attach::new().to(builder)
}

/// How to attach to a runtime's builder.
///
/// A builder has one hook of each kind, and a later one takes the place of an earlier one. So give hooks of your own to
/// this, and they are called beside weft's. Hooks of threads that the builder already has are left in place: then weft
/// does without, and the report says so.
///
/// ```
/// let mut builder = tokio::runtime::Builder::new_multi_thread();
/// weft_tokio::Attach::new()
///     .name("http")
///     .on_thread_start(|| println!("a thread of mine"))
///     .to(&mut builder)?;
/// # Ok::<(), weft::Error>(())
/// ```
#[derive(Default)]
#[must_use]
pub struct Attach {
    name: Option<String>,
    wait_stacks: bool,
    thread_start: Option<Hook>,
    thread_stop: Option<Hook>,
    thread_park: Option<Hook>,
    thread_unpark: Option<Hook>,
    #[cfg(tokio_unstable)]
    task_spawn: Option<TaskHook>,
    #[cfg(tokio_unstable)]
    task_terminate: Option<TaskHook>,
    #[cfg(tokio_unstable)]
    before_poll: Option<TaskHook>,
    #[cfg(tokio_unstable)]
    after_poll: Option<TaskHook>,
}

impl std::fmt::Debug for Attach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attach").field("name", &self.name).finish_non_exhaustive()
    }
}

macro_rules! own_hooks {
    ($($(#[$meta:meta])* $method:ident => $field:ident;)*) => {
        $(
            $(#[$meta])*
            pub fn $method(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
                self.$field = Some(Arc::new(hook));
                self
            }
        )*
    };
}

macro_rules! own_task_hooks {
    ($($(#[$meta:meta])* $method:ident => $field:ident;)*) => {
        $(
            $(#[$meta])*
            #[cfg(tokio_unstable)]
            pub fn $method(mut self, hook: impl Fn(&TaskMeta<'_>) + Send + Sync + 'static) -> Self {
                self.$field = Some(Arc::new(hook));
                self
            }
        )*
    };
}

impl Attach {
    /// Default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// What the runtime is called in reports. "tokio" by default, and its number besides where there are several.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Where each task of [`spawn`](crate::spawn) waits: its stack when it last began to wait. That is a stack for each
    /// poll that ends so, about a microsecond; for a process that has a problem, not for each day. It is of the whole
    /// process.
    pub fn wait_stacks(mut self, on: bool) -> Self {
        self.wait_stacks = on;
        self
    }

    own_hooks! {
        /// A hook of your own, beside weft's: `Builder::on_thread_start`.
        on_thread_start => thread_start;
        /// The same: `Builder::on_thread_stop`.
        on_thread_stop => thread_stop;
        /// The same: `Builder::on_thread_park`.
        on_thread_park => thread_park;
        /// The same: `Builder::on_thread_unpark`.
        on_thread_unpark => thread_unpark;
    }

    own_task_hooks! {
        /// A hook of your own, beside weft's: `Builder::on_task_spawn`. Needs `--cfg tokio_unstable`.
        on_task_spawn => task_spawn;
        /// The same: `Builder::on_task_terminate`.
        on_task_terminate => task_terminate;
        /// The same: `Builder::on_before_task_poll`. Yours comes first, and is not part of the poll.
        on_before_task_poll => before_poll;
        /// The same: `Builder::on_after_task_poll`. Yours comes last.
        on_after_task_poll => after_poll;
    }

    /// Attaches. Fails when the process has had 64 runtimes already; the builder is as it was then.
    pub fn to(self, builder: &mut Builder) -> Result<(), weft::Error> {
        let name = self.name.clone().unwrap_or_else(default_name);
        let shared = Shared::new(&name)?;
        if self.wait_stacks {
            WAIT_STACKS.store(true, Ordering::Relaxed);
        }
        let taken = Taken::of(builder);
        let missing = self.missing(&taken);
        if !missing.is_empty() {
            let _ = shared.runtime().not_measured(&format!("runtime {name}: {}", missing.join("; ")));
        }
        self.install_threads(builder, &shared, &taken);
        #[cfg(tokio_unstable)]
        self.install_tasks(builder, &shared);
        Ok(())
    }

    /// What will not be known, for the report.
    fn missing(&self, taken: &Taken) -> Vec<String> {
        let mut missing = Vec::new();
        if !cfg!(tokio_unstable) {
            missing.push(
                "polls of tasks that weft_tokio::spawn did not spawn, local queues and Tokio's worker numbers are not \
                 measured; build with RUSTFLAGS='--cfg tokio_unstable'"
                    .to_string(),
            );
        }
        for (is_taken, own, hook, what) in [
            (taken.start, self.thread_start.is_some(), "on_thread_start", "names of blocking threads"),
            (taken.stop, self.thread_stop.is_some(), "on_thread_stop", "the global queue"),
            (taken.park, self.thread_park.is_some(), "on_thread_park", "parks"),
            (taken.unpark, self.thread_unpark.is_some(), "on_thread_unpark", "parks"),
        ] {
            if is_taken && !own {
                missing.push(format!(
                    "{what} are not measured: the builder has its own {hook}; give that to weft_tokio::Attach"
                ));
            }
        }
        missing
    }

    fn install_threads(&self, builder: &mut Builder, shared: &Arc<Shared>, taken: &Taken) {
        if !taken.start && !taken.stop {
            let (of, own) = (shared.clone(), self.thread_start.clone());
            builder.on_thread_start(move || {
                of.thread_start();
                call(&own);
            });
            let (of, own) = (shared.clone(), self.thread_stop.clone());
            builder.on_thread_stop(move || {
                call(&own);
                of.thread_stop();
            });
        }
        if !taken.park && !taken.unpark {
            let (of, own) = (shared.clone(), self.thread_park.clone());
            builder.on_thread_park(move || {
                call(&own);
                hooks::park(&of);
            });
            let (of, own) = (shared.clone(), self.thread_unpark.clone());
            builder.on_thread_unpark(move || {
                hooks::unpark(&of);
                call(&own);
            });
        }
    }

    #[cfg(tokio_unstable)]
    fn install_tasks(self, builder: &mut Builder, shared: &Arc<Shared>) {
        let own = self.task_spawn;
        builder.on_task_spawn(move |meta| {
            hooks::tasks::spawn(meta);
            call_task(&own, meta);
        });
        let own = self.task_terminate;
        builder.on_task_terminate(move |meta| {
            call_task(&own, meta);
            hooks::tasks::terminate(meta);
        });
        let (of, own) = (shared.clone(), self.before_poll);
        builder.on_before_task_poll(move |meta| {
            call_task(&own, meta);
            hooks::tasks::before_poll(&of, meta);
        });
        let own = self.after_poll;
        builder.on_after_task_poll(move |meta| {
            hooks::tasks::after_poll();
            call_task(&own, meta);
        });
    }
}

fn call(hook: &Option<Hook>) {
    if let Some(hook) = hook {
        hook();
    }
}

#[cfg(tokio_unstable)]
#[inline]
fn call_task(hook: &Option<TaskHook>, meta: &TaskMeta<'_>) {
    if let Some(hook) = hook {
        hook(meta);
    }
}

fn default_name() -> String {
    use std::sync::atomic::AtomicU32;
    static ATTACHED: AtomicU32 = AtomicU32::new(0);
    match ATTACHED.fetch_add(1, Ordering::Relaxed) {
        0 => "tokio".into(),
        n => format!("tokio-{}", n + 1),
    }
}

/// Hooks that a builder has. It tells only people so, in its debug output.
struct Taken {
    start: bool,
    stop: bool,
    park: bool,
    unpark: bool,
}

impl Taken {
    fn of(builder: &Builder) -> Self {
        let text = format!("{builder:?}");
        let has = |field: &str| text.contains(&format!("{field}: Some("));
        Self {
            start: has("after_start"),
            stop: has("before_stop"),
            park: has("before_park"),
            unpark: has("after_unpark"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_that_the_builder_has_are_seen() {
        let mut builder = Builder::new_current_thread();
        assert!(!Taken::of(&builder).park);
        builder.on_thread_park(|| ());
        assert!(Taken::of(&builder).park);
        assert!(!Taken::of(&builder).start);
    }
}
