// The style of the page: what pages share, and its navigation, groups of values and live table.
import { COMMON_STYLE } from '../../base/html/common-style.ts';

const FRAME =
  '.name{margin:0;font-weight:600}.name a{color:inherit;text-decoration:none}h1{margin:.25rem 0 .75rem}' +
  'header nav{margin-left:0;display:flex;gap:.15rem 1rem;flex-wrap:wrap}nav a{padding:.25rem 0}' +
  'nav a[aria-current]{color:inherit;font-weight:600;text-decoration-thickness:2px}.sign-out{margin:0 0 0 auto}' +
  '.skip{position:absolute;left:-999rem}.skip:focus{position:static;display:inline-block;padding:.5rem 1rem}main:focus{outline:none}' +
  'label{display:flex;gap:.25rem .5rem;align-items:center;flex-wrap:wrap}label.grow{flex:1 1 16rem}label.grow input{flex:1 1 12rem;min-width:0}' +
  '.stacked{display:grid;gap:.75rem;max-width:30rem}.stacked label{display:grid}.stacked button{justify-self:start}' +
  'dl.values{grid-template-columns:fit-content(18rem) minmax(0,1fr);max-width:70rem}.groups{display:grid;gap:.5rem 2rem}' +
  '@media(min-width:1000px){.groups{grid-template-columns:1fr 1fr}}section{margin:0 0 1.25rem;min-width:0}h2{margin:.75rem 0 .25rem}' +
  '.note{color:var(--faint);max-width:46rem;margin:.25rem 0 .75rem}td .lines{display:block}' +
  '.refused dl{border-left:3px solid var(--bad);padding-left:.75rem}' +
  '@media(max-width:520px){header nav{order:1;flex-basis:100%}dl.values{grid-template-columns:1fr}dl.values dd{margin:0 0 .4rem}}';

/** The live table; below 900 px each record is a block of two or three lines. */
const LIVE =
  '[data-live] td,[data-live] th{white-space:nowrap;font-size:.85rem;padding:.2rem .75rem .2rem 0}[data-live] .host,[data-live] .path,' +
  '[data-live] .rule{white-space:normal}[data-live] .host,[data-live] .path,.time,.method{font-family:ui-monospace,monospace}' +
  '[data-live] .path{min-width:14rem}[data-live] .host{min-width:10rem}[data-live] .rule{min-width:6rem;max-width:16rem}.status,.latency,.time{font-variant-numeric:tabular-nums}' +
  'tr:focus{outline:2px solid var(--link);outline-offset:-2px;background:var(--here)}button[aria-pressed=true]{background:var(--here)}' +
  '@media(max-width:900px){[data-live] thead{display:none}[data-live] tr{display:block;padding:.4rem 0;border-bottom:1px solid var(--line)}' +
  '[data-live] td{display:inline-block;max-width:100%;border:0;white-space:normal;padding:0 .75rem 0 0}[data-live] td:has(bdi:empty){display:none}' +
  '[data-live] .path{display:block}[data-live] .host,[data-live] .path,[data-live] .rule{min-width:0;max-width:100%}}';

export const STYLE: string = COMMON_STYLE + FRAME + LIVE;
