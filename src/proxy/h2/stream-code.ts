// The error codes with which HTTP/2 ends streams and sessions (RFC 9113 §7).
export const StreamCode = {
  noError: 0,
  internalError: 2,
  refusedStream: 7,
  cancel: 8,
  enhanceYourCalm: 11,
} as const;

const NAMES = [
  'NO_ERROR',
  'PROTOCOL_ERROR',
  'INTERNAL_ERROR',
  'FLOW_CONTROL_ERROR',
  'SETTINGS_TIMEOUT',
  'STREAM_CLOSED',
  'FRAME_SIZE_ERROR',
  'REFUSED_STREAM',
  'CANCEL',
  'COMPRESSION_ERROR',
  'CONNECT_ERROR',
  'ENHANCE_YOUR_CALM',
  'INADEQUATE_SECURITY',
  'HTTP_1_1_REQUIRED',
] as const;

/** The RFC's name of a code, for records. */
export function streamCodeName(code: number): string {
  return NAMES[code] ?? 'UNKNOWN';
}
