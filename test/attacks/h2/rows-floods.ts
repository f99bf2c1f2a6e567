// T-08 to T-11 and T-13: a client causes work without a request, with a few thousand frames each. Its connection is closed
// soon, and no other; legitimate traffic that looks similar continues.
import type { ErrorName } from '../../support/h2-frames.ts';
import {
  type FrameStep,
  type H2Expectation,
  type H2Row,
  arrival,
  begin,
  clientRows,
  ends,
  fields,
  get,
  served,
} from './h2-script.ts';

/** The requests that may arrive before a flood is detected: a burst of legitimate resets and the concurrent streams. */
const MOST = 300;
/** The resets that each tick of a session allows in addition, however long the machine takes for the row. */
const PER_TICK = 25;
/** More than every limit of the proxy. */
const MANY = 6_000;
/** More small frames than fit into the byte limit for frames without effect. */
const CRUMBS = 50_000;

function flood(times: number, ...steps: readonly FrameStep[]): FrameStep {
  return { times, steps };
}

const calm = ['ENHANCE_YOUR_CALM', 'INTERNAL_ERROR'] as const;
type Codes = readonly ErrorName[];
const ended = (...codes: Codes): H2Expectation => ({
  ...ends(...codes),
  arrives: MOST,
  mayBegin: MOST,
  perTick: PER_TICK,
});
const quiet = (...codes: Codes): H2Expectation => ends(...codes);

const t08 = clientRows('T-08', [
  ['head-and-reset', [flood(MANY, get(), { rst: 'CANCEL' })], ended(...calm)],
  ['head-and-reset-without-an-error', [flood(MANY, get(), { rst: 'NO_ERROR' })], ended(...calm)],
  ['head-and-reset-with-an-unknown-code', [flood(MANY, get(), { rst: 0xdeadbeef })], ended(...calm)],
  [
    'head-without-end-and-reset',
    [flood(MANY, begin(), { rst: 'REFUSED_STREAM' })],
    { ...ended(...calm), arrives: 0 },
  ],
  [
    'half-a-body-and-reset',
    [flood(MANY, begin([['content-length', '9']]), { data: 'half' }, { rst: 'CANCEL' })],
    { ...ended(...calm), arrives: 0 },
  ],
  [
    'two-heads-and-two-resets',
    [flood(MANY / 2, get(), get(), { rst: 'CANCEL' }, { rst: 'CANCEL' })],
    ended(...calm, 'PROTOCOL_ERROR'),
  ],
  [
    'a-window-of-nothing-so-that-we-reset',
    [flood(MANY, get(), { window: 0 })],
    ended(...calm, 'PROTOCOL_ERROR'),
  ],
  [
    'a-window-too-far-so-that-we-reset',
    [flood(MANY, begin(), { window: 0x7fffffff })],
    { ...ended(...calm, 'FLOW_CONTROL_ERROR'), arrives: 0 },
  ],
  ['a-body-after-the-end', [flood(MANY, get(), { data: 'late' })], ended(...calm, 'STREAM_CLOSED')],
  [
    'a-head-after-the-end',
    [flood(MANY, get(), { frame: 'HEADERS', flags: 5 })],
    ended(...calm, 'STREAM_CLOSED', 'PROTOCOL_ERROR'),
  ],
  [
    'a-frame-of-priority-on-itself',
    [flood(MANY, get(), { frame: 'HEADERS', flags: 0x25, payload: '\0\0\0\x01\0' })],
    ended(...calm, 'STREAM_CLOSED', 'PROTOCOL_ERROR', 'FRAME_SIZE_ERROR'),
  ],
  ['malformed-requests', [flood(MANY, get([['X-Upper', '1']]))], quiet(...calm, 'PROTOCOL_ERROR')],
  [
    'requests-that-we-refuse',
    [flood(MANY, get([], { ':scheme': 'ftp' }), { rst: 'CANCEL' })],
    quiet(...calm),
  ],
  ['more-open-than-allowed', [flood(MANY, begin())], { ...ended(...calm, 'PROTOCOL_ERROR'), arrives: 0 }],
  ['fifty-resets', [flood(50, get(), { rst: 'CANCEL' })], { streams: {}, arrives: 50, mayBegin: 50 }],
]);

const head = fields();
const t09 = clientRows('T-09', [
  [
    'empty-ones-without-end',
    [{ head, isOpen: true, isEnd: true }, flood(MANY, { frame: 'CONTINUATION' })],
    quiet(...calm, 'PROTOCOL_ERROR'),
  ],
  [
    'one-byte-each',
    [{ head, isOpen: true, isEnd: true }, flood(MANY, { frame: 'CONTINUATION', payload: '\x82' })],
    quiet(...calm, 'PROTOCOL_ERROR'),
  ],
  [
    'indices-into-the-static-table',
    [
      { head, isOpen: true, isEnd: true },
      flood(400, { frame: 'CONTINUATION', payload: '\x90'.repeat(16_000) }),
    ],
    quiet(...calm, 'PROTOCOL_ERROR'),
  ],
  [
    'a-name-that-never-ends',
    [
      { head, isOpen: true },
      { frame: 'CONTINUATION', payload: '\0\x7f\xff\xff\xff\x03' },
      flood(1_000, { frame: 'CONTINUATION', payload: 'a'.repeat(16_000) }),
    ],
    quiet(...calm, 'PROTOCOL_ERROR', 'COMPRESSION_ERROR'),
  ],
  [
    'an-integer-that-never-ends',
    [{ head, isOpen: true }, flood(MANY, { frame: 'CONTINUATION', payload: '\xff' })],
    quiet(...calm, 'PROTOCOL_ERROR', 'COMPRESSION_ERROR'),
  ],
  [
    'on-the-empty-head',
    [{ frame: 'HEADERS', stream: 1 }, flood(MANY, { frame: 'CONTINUATION', stream: 1 })],
    quiet(...calm, 'PROTOCOL_ERROR'),
  ],
  [
    'of-a-padded-head',
    [
      { frame: 'HEADERS', stream: 1, flags: 8, payload: `\xff${'\0'.repeat(255)}` },
      flood(MANY, { frame: 'CONTINUATION', stream: 1 }),
    ],
    quiet(...calm, 'PROTOCOL_ERROR'),
  ],
  [
    'of-trailers',
    [
      begin(),
      { data: 'abc' },
      { head: [], stream: 1, isEnd: true, isOpen: true },
      flood(MANY, { frame: 'CONTINUATION' }),
    ],
    { ...quiet(...calm, 'PROTOCOL_ERROR'), mayBegin: 1 },
  ],
  ['a-body-in-between', [{ head, isOpen: true }, { data: 'x' }], quiet('PROTOCOL_ERROR')],
  ['settings-in-between', [{ head, isOpen: true }, { settings: {} }], quiet('PROTOCOL_ERROR')],
  ['a-frame-of-no-known-type-in-between', [{ head, isOpen: true }, { frame: 0xbb }], quiet('PROTOCOL_ERROR')],
  ['a-second-head-in-between', [{ head, isOpen: true }, get()], quiet('PROTOCOL_ERROR')],
  [
    'on-stream-0',
    [
      { head, isOpen: true },
      { frame: 'CONTINUATION', stream: 0, flags: 4 },
    ],
    quiet('PROTOCOL_ERROR'),
  ],
  [
    'after-the-end-of-a-head',
    [get(), { frame: 'CONTINUATION', flags: 4, payload: '\x82' }],
    { ...quiet('PROTOCOL_ERROR'), arrives: 1, mayBegin: 1 },
  ],
  ['one-byte-of-the-head-each', [{ head, isEnd: true, split: 1 }], quiet(...calm, 'PROTOCOL_ERROR')],
  ['seven-of-them', [{ head, isEnd: true, split: 20 }], served(arrival())],
]);

const t10 = clientRows('T-10', [
  ['pings', [flood(MANY, { frame: 'PING', payload: '12345678' })], quiet(...calm)],
  [
    'acknowledgements-of-pings',
    [flood(MANY, { frame: 'PING', flags: 1, payload: '12345678' })],
    quiet(...calm, 'PROTOCOL_ERROR'),
  ],
  [
    'pings-on-a-stream',
    [get(), { frame: 'PING', stream: 1, payload: '12345678' }],
    { ...quiet('PROTOCOL_ERROR'), arrives: 1, mayBegin: 1 },
  ],
  ['settings', [flood(MANY, { settings: {} })], quiet(...calm)],
  [
    'settings-that-change-the-window',
    [
      flood(
        MANY / 2,
        { settings: { initial_window_size: 1 } },
        { settings: { initial_window_size: 0x7fffffff } },
      ),
    ],
    quiet(...calm),
  ],
  [
    'settings-of-unknown-numbers',
    [flood(MANY, { frame: 'SETTINGS', stream: 0, payload: '\x7f\xff\0\0\0\x01' })],
    quiet(...calm),
  ],
  [
    'a-setting-two-thousand-times-in-one-frame',
    [flood(100, { frame: 'SETTINGS', stream: 0, payload: '\0\x04\0\0\xff\xff'.repeat(2_000) })],
    quiet(...calm, 'PROTOCOL_ERROR'),
  ],
  [
    'acknowledgements-of-settings',
    [flood(MANY, { frame: 'SETTINGS', stream: 0, flags: 1 })],
    quiet(...calm, 'PROTOCOL_ERROR'),
  ],
  [
    'an-acknowledgement-of-settings-with-a-payload',
    [{ frame: 'SETTINGS', stream: 0, flags: 1, payload: '\0\x04\0\0\xff\xff' }],
    quiet('FRAME_SIZE_ERROR'),
  ],
  ['settings-on-a-stream', [{ frame: 'SETTINGS', stream: 1 }], quiet('PROTOCOL_ERROR')],
  ['push-that-is-two', [{ settings: { enable_push: 2 } }], quiet('PROTOCOL_ERROR')],
  ['frames-beyond-2-24', [{ settings: { max_frame_size: 0x1000000 } }], quiet('PROTOCOL_ERROR')],
  ['windows-of-the-connection', [flood(CRUMBS, { window: 1, stream: 0 })], quiet(...calm)],
  ['windows-of-a-stream', [begin(), flood(CRUMBS, { window: 1 })], { ...quiet(...calm), mayBegin: 1 }],
  [
    'windows-of-a-closed-stream',
    [get(), { rst: 'CANCEL' }, flood(CRUMBS, { window: 1 })],
    { ...quiet(...calm), arrives: 1, mayBegin: 1 },
  ],
  ['a-window-of-an-idle-stream', [{ window: 1, stream: 99 }], quiet('PROTOCOL_ERROR')],
  [
    'a-window-of-the-connection-in-two-steps-too-far',
    [
      { window: 0x3fffffff, stream: 0 },
      { window: 0x40000000, stream: 0 },
    ],
    quiet('FLOW_CONTROL_ERROR'),
  ],
  [
    'a-window-cut-short',
    [{ frame: 'WINDOW_UPDATE', stream: 0, payload: '\0\0\x01' }],
    quiet('FRAME_SIZE_ERROR'),
  ],
  [
    'priorities',
    [flood(CRUMBS, { frame: 'PRIORITY', stream: 1, payload: '\0\0\0\x03\x0f' })],
    quiet(...calm),
  ],
  [
    'priorities-that-are-exclusive',
    [flood(CRUMBS, { frame: 'PRIORITY', stream: 3, payload: '\x80\0\0\0\xff' })],
    quiet(...calm),
  ],
  [
    'updates-of-priority',
    [flood(CRUMBS, { frame: 0x10, stream: 0, payload: '\0\0\0\x01u=0, i' })],
    quiet(...calm, 'PROTOCOL_ERROR'),
  ],
  ['empty-pieces-of-a-body', [begin(), flood(CRUMBS, { data: '' })], { ...quiet(...calm), mayBegin: 1 }],
  [
    'pieces-of-nothing-but-padding',
    [begin(), flood(CRUMBS, { data: '', padding: 3 })],
    { ...quiet(...calm, 'FLOW_CONTROL_ERROR'), mayBegin: 1 },
  ],
  ['frames-of-no-known-type', [flood(CRUMBS, { frame: 0xfe, stream: 0 })], quiet(...calm)],
  [
    'alternative-services',
    [flood(CRUMBS, { frame: 0x0a, stream: 0, payload: '\0\x08evil.testh2=":1"' })],
    quiet(...calm, 'PROTOCOL_ERROR'),
  ],
  [
    'origins',
    [flood(CRUMBS, { frame: 0x0c, stream: 0, payload: '\0\x11https://evil.test' })],
    quiet(...calm, 'PROTOCOL_ERROR'),
  ],
  ['leaves', [flood(CRUMBS, { goaway: 0, code: 'NO_ERROR' })], quiet('NO_ERROR', ...calm, 'PROTOCOL_ERROR')],
  [
    'ten-pings-and-a-request',
    [flood(10, { frame: 'PING', stream: 0, payload: '12345678' }), get()],
    served(arrival()),
  ],
]);

export const floodRows: readonly H2Row[] = [...t08, ...t09, ...t10];
