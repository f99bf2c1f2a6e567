// Lengths that hops read differently: F-02 to F-04.
import { type MessageRow, accepted, arrival, malformed, post, rowsOf } from './message-script.ts';

export const framingRows: readonly MessageRow[] = [
  ...rowsOf('F-04', [
    ['plus-sign', post('/x', ['Content-Length: +3'], 'abc'), malformed],
    [
      'plain',
      post('/x', ['Content-Length: 3'], 'abc'),
      accepted(arrival('POST /x', ['Content-Length: 3'], 'abc')),
    ],
  ]),
];
