// SPDX-License-Identifier: Apache-2.0
// What the panels below are restricted to, each with a way to remove it.
import { select, showRecording } from './actions';
import { useApp, useAsync, useLoaded, useView } from './context';
import { duration, moment } from './format';
import { one } from './table';

function Chip({ text, clear }: { text: string; clear: () => void }) {
  return (
    <span class="chip">
      {text}
      <button aria-label={`Remove: ${text}`} onClick={clear}>
        ×
      </button>
    </span>
  );
}

export function Chips() {
  const app = useApp();
  const s = useView((v) => v.selection);
  const lanes = useLoaded((l) => l.info.lanes);
  const recordings = useLoaded((l) => l.info.recordings);
  const { value: location } = useAsync(
    async () =>
      s.locationId === undefined
        ? null
        : one(app.trace, 'location', [{ column: 'id', op: '=', value: s.locationId }]),
    [s.locationId],
  );
  const threads = s.threadIds?.map((id) => lanes.find((l) => l.threadId === id)?.name ?? `thread ${id}`);
  return (
    <span class="chips" data-testid="chips">
      {s.fromNs !== undefined && s.toNs !== undefined && (
        <Chip
          text={`${moment(s.fromNs)} for ${duration(s.toNs - s.fromNs)}`}
          clear={() => select(app, { fromNs: undefined, toNs: undefined })}
        />
      )}
      {threads && (
        <Chip
          text={threads.length > 3 ? `${threads.length} lanes` : threads.join(', ')}
          clear={() => select(app, { threadIds: undefined })}
        />
      )}
      {s.recording !== undefined && s.task === undefined && (
        <Chip
          text={recordings[s.recording]?.name ?? `recording ${s.recording}`}
          clear={() => select(app, { recording: undefined })}
        />
      )}
      {s.task !== undefined && (
        <Chip text={`task ${s.task}`} clear={() => select(app, { task: undefined, recording: undefined })} />
      )}
      {s.locationId !== undefined && (
        <Chip
          text={location?.str('name') ?? `location ${s.locationId}`}
          clear={() => select(app, { locationId: undefined })}
        />
      )}
      {s.pollId !== undefined && <Chip text={`poll ${s.pollId}`} clear={() => select(app, { pollId: undefined })} />}
      {s.spanId !== undefined && <Chip text={`span ${s.spanId}`} clear={() => select(app, { spanId: undefined })} />}
      {s.label && <Chip text={`${s.label.key}=${s.label.value}`} clear={() => select(app, { label: undefined })} />}
      {s.minPollNs !== undefined && (
        <Chip text={`polls from ${duration(s.minPollNs)}`} clear={() => select(app, { minPollNs: undefined })} />
      )}
    </span>
  );
}

/** Of several recordings one can be chosen, for all panels below. */
export function RecordingChoice() {
  const app = useApp();
  const recordings = useLoaded((l) => l.info.recordings);
  const chosen = useView((v) => v.selection.recording);
  if (recordings.length < 2) return null;
  return (
    <select
      aria-label="Recording"
      value={chosen ?? ''}
      onChange={(e) => {
        const value = e.currentTarget.value;
        select(app, { recording: value === '' ? undefined : Number(value), task: undefined });
        showRecording(app, value === '' ? null : Number(value));
      }}
    >
      <option value="">all recordings</option>
      {recordings.map((one, i) => (
        <option key={i} value={i}>
          {one.name}
        </option>
      ))}
    </select>
  );
}
