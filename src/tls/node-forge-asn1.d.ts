// Types for the one module of node-forge that is loaded: its ASN.1 encoder. The whole package takes 36 ms to load, this
// module 5 ms, and the rest is cryptography that node:crypto does better.
declare module 'node-forge/lib/asn1.js' {
  import { asn1 } from 'node-forge';
  export default asn1;
}
