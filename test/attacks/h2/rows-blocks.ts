// T-11 to T-13: header blocks that expand, frames with a wrong length or type, windows that stay closed.
import {
  type H2Expectation,
  type H2Row,
  type Part,
  responded,
  arrival,
  begin,
  clientRows,
  ends,
  fields,
  get,
  served,
} from './h2-script.ts';

/** Adds a field to the dynamic table, then refers to it `times` times. */
const bomb = (bytes: number, times: number): readonly Part[] => [
  ['x-bomb', 'b'.repeat(bytes), 'indexing'],
  { index: 62, times },
];
const tooLarge = responded('431 head_too_large');
const tooMuch: H2Expectation = responded('RST ENHANCE_YOUR_CALM');
const broken = ends('COMPRESSION_ERROR');

const t11 = clientRows('T-11', [
  [
    'a-field-of-1-kib-a-hundred-times',
    [get(bomb(1_000, 99))],
    responded('431 head_too_large|RST ENHANCE_YOUR_CALM'),
  ],
  ['a-field-of-4-kib-sixteen-thousand-times', [get(bomb(4_000, 16_000))], tooMuch],
  ['an-empty-field-ten-thousand-times', [get(bomb(0, 10_000))], tooMuch],
  ['a-field-of-20-kib', [get([['x', 'y'.repeat(20_000)]])], tooLarge],
  [
    'a-name-of-20-kib',
    [get([['x'.repeat(20_000), 'y']])],
    responded('431 head_too_large|RST PROTOCOL_ERROR'),
  ],
  [
    'three-hundred-cookies',
    [get(Array.from({ length: 300 }, (_, n) => ['cookie', `c${n}=1`] as const))],
    tooLarge,
  ],
  ['a-table-larger-than-allowed', [{ head: [{ hex: '3fe1ff3f' }, ...fields()], isEnd: true }], broken],
  ['a-size-of-the-table-after-a-field', [get([{ hex: '20' }])], broken],
  ['an-index-of-nothing', [get([{ index: 63 }])], broken],
  ['index-0', [get([{ hex: '80' }])], broken],
  ['an-integer-of-ten-bytes', [get([{ hex: 'ff'.repeat(10) }])], broken],
  ['a-string-that-ends-after-its-block', [get([{ hex: '007f61' }])], broken],
  ['huffman-with-an-end-of-string', [get([{ hex: '00016184ffffffff' }])], broken],
  ['huffman-with-a-byte-of-padding', [get([{ hex: '00016182 1fff'.replace(' ', '') }])], broken],
  ['half-a-field', [get([{ hex: '00' }])], broken],
]);

const t12 = clientRows('T-12', [
  ['a-head-on-stream-0', [{ head: fields(), stream: 0, isEnd: true }], ends('PROTOCOL_ERROR')],
  ['a-head-on-stream-2', [{ head: fields(), stream: 2, isEnd: true }], ends('PROTOCOL_ERROR')],
  ['all-padding', [{ frame: 'HEADERS', stream: 1, flags: 0x0c, payload: '\xff' }], ends('PROTOCOL_ERROR')],
  [
    'a-priority-of-three-bytes',
    [{ frame: 'HEADERS', stream: 1, flags: 0x24, payload: '\0\0\0' }],
    ends('PROTOCOL_ERROR', 'FRAME_SIZE_ERROR'),
  ],
  ['a-body-before-its-head', [{ data: 'x', stream: 1 }], ends('PROTOCOL_ERROR')],
  [
    'a-body-on-stream-0',
    [get(), { data: 'x', stream: 0 }],
    { ...ends('PROTOCOL_ERROR'), arrives: 1, mayBegin: 1 },
  ],
  ['a-reset-before-its-head', [{ rst: 'CANCEL', stream: 3 }], ends('PROTOCOL_ERROR')],
  [
    'a-frame-of-16385',
    [{ frame: 'HEADERS', stream: 1, flags: 5, payload: '\0'.repeat(16_385) }],
    ends('FRAME_SIZE_ERROR'),
  ],
  [
    'a-frame-that-says-16-mib',
    [{ frame: 'DATA', stream: 1, length: 0xffffff }],
    ends('FRAME_SIZE_ERROR', 'PROTOCOL_ERROR'),
  ],
  ['an-empty-head', [{ head: [], isEnd: true }], responded('RST PROTOCOL_ERROR')],
  [
    'a-promise',
    [begin(), { frame: 'PUSH_PROMISE', flags: 4, payload: '\0\0\0\x02' }],
    { ...ends('PROTOCOL_ERROR'), mayBegin: 1 },
  ],
  [
    'a-second-head-without-end',
    [begin(), { head: [['x', 'y']], stream: 1 }],
    { ...responded('RST PROTOCOL_ERROR'), mayBegin: 1 },
  ],
  ['a-goaway-of-three-bytes', [{ frame: 'GOAWAY', stream: 0, payload: '\0\0\0' }], ends('FRAME_SIZE_ERROR')],
  [
    'http-1-1-after-the-preface',
    [{ bytes: 'GET / HTTP/1.1\r\nHost: api.test\r\n\r\n'.repeat(50) }],
    ends('FRAME_SIZE_ERROR', 'PROTOCOL_ERROR'),
  ],
  [
    'the-preface-once-more',
    [{ bytes: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' }],
    ends('FRAME_SIZE_ERROR', 'PROTOCOL_ERROR'),
  ],
  [
    'reserved-bits',
    [
      { head: fields(), stream: 0x80000001, isEnd: true },
      { window: 1, stream: 0 },
    ],
    { streams: { 1: '200' }, arrives: [arrival()] },
  ],
]);

const t13 = clientRows('T-13', [
  [
    'a-window-that-opens-late',
    [
      { settings: { initial_window_size: 0 } },
      get(),
      { wait: 'head' },
      { window: 100, stream: 1 },
      { settings: { initial_window_size: 65_535 } },
    ],
    served(arrival()),
  ],
  [
    'a-window-of-one-byte',
    [
      { settings: { initial_window_size: 1 } },
      get(),
      { wait: 'head' },
      { settings: { initial_window_size: 50 } },
    ],
    served(arrival()),
  ],
  [
    'fifty-streams-with-a-window-of-nothing-and-a-leave',
    [
      { settings: { initial_window_size: 0 } },
      { times: 50, steps: [get()] },
      { wait: 'head' },
      { leave: 'rst' },
    ],
    { streams: {}, arrives: 50 },
  ],
  [
    'fifty-streams-with-a-window-of-nothing-and-fin',
    [
      { settings: { initial_window_size: 0 } },
      { times: 50, steps: [get()] },
      { wait: 'head' },
      { leave: 'fin' },
    ],
    { streams: {}, arrives: 50 },
  ],
  [
    'a-body-beyond-the-window',
    [begin(), { times: 200, steps: [{ data: 'x'.repeat(16_384) }] }],
    { ...ends('FLOW_CONTROL_ERROR', 'INTERNAL_ERROR', 'ENHANCE_YOUR_CALM'), mayBegin: 1 },
  ],
  [
    'a-window-taken-back',
    [get(), { settings: { initial_window_size: 0 } }, { settings: { initial_window_size: 65_535 } }],
    served(arrival()),
  ],
  [
    'a-request-reset-while-it-waits',
    [
      { settings: { initial_window_size: 0 } },
      get(),
      { wait: 'head' },
      { rst: 'CANCEL' },
      { settings: { initial_window_size: 65_535 } },
    ],
    { streams: {}, arrives: 1 },
  ],
]);

export const blockRows: readonly H2Row[] = [...t11, ...t12, ...t13];
