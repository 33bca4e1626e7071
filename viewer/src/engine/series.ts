// SPDX-License-Identifier: Apache-2.0
// Lines over time: for each pixel the least, the most and the mean of the points in it.
import type { Series } from '../api.ts';
import { covered, lowerBound, type LodData } from './lod.ts';

const BLOCK = 64;

export interface SeriesData {
  timeNs: Float64Array;
  value: Float32Array;
  min: Float32Array; // of blocks
  max: Float32Array;
  sum: Float64Array;
  count: Uint8Array; // points with a number
  shiftNs: number; // to be added to all times
}

export function buildSeries(timeNs: Float64Array, value: Float32Array): SeriesData {
  const blocks = Math.ceil(value.length / BLOCK);
  const data: SeriesData = {
    timeNs,
    value,
    min: new Float32Array(blocks),
    max: new Float32Array(blocks),
    sum: new Float64Array(blocks),
    count: new Uint8Array(blocks),
    shiftNs: 0,
  };
  for (let block = 0; block < blocks; block++) {
    const end = Math.min(value.length, (block + 1) * BLOCK);
    let min = Infinity;
    let max = -Infinity;
    let sum = 0;
    let count = 0;
    for (let i = block * BLOCK; i < end; i++) {
      const one = value[i];
      if (one < min) min = one;
      if (one > max) max = one;
      if (one !== one) continue; // no number
      sum += one;
      count++;
    }
    data.min[block] = min;
    data.max[block] = max;
    data.sum[block] = sum;
    data.count[block] = count;
  }
  return data;
}

export function seriesBuffers(data: SeriesData): ArrayBuffer[] {
  const arrays = [data.timeNs, data.value, data.min, data.max, data.sum, data.count];
  return arrays.map((array) => array.buffer as ArrayBuffer);
}

interface Pixel {
  n: number;
  min: number;
  max: number;
  sum: number;
}

function addRange(data: SeriesData, from: number, to: number, pixel: Pixel): void {
  let i = from;
  while (i < to) {
    if (i % BLOCK === 0 && i + BLOCK <= to) {
      const block = i / BLOCK;
      pixel.min = Math.min(pixel.min, data.min[block]);
      pixel.max = Math.max(pixel.max, data.max[block]);
      pixel.sum += data.sum[block];
      pixel.n += data.count[block];
      i += BLOCK;
    } else {
      const value = data.value[i++];
      if (Number.isNaN(value)) continue;
      pixel.min = Math.min(pixel.min, value);
      pixel.max = Math.max(pixel.max, value);
      pixel.sum += value;
      pixel.n++;
    }
  }
}

function empty(name: string, unit: string, fromNs: number, toNs: number, pixels: number): Series {
  const n = Math.max(1, Math.floor(pixels));
  const timeNs = new Float64Array(n);
  for (let i = 0; i < n; i++) timeNs[i] = fromNs + ((i + 0.5) * (toNs - fromNs)) / n;
  const nothing = (): Float32Array => new Float32Array(n).fill(NaN);
  return { name, unit, timeNs, min: nothing(), max: nothing(), mean: nothing() };
}

/** NaN where there is no point. */
export function sampleSeries(
  name: string, unit: string, all: SeriesData[], fromNs: number, toNs: number, pixels: number,
): Series {
  const series = empty(name, unit, fromNs, toNs, pixels);
  const n = series.timeNs.length;
  const at = all.map((data) => lowerBound(data.timeNs, fromNs - data.shiftNs));
  for (let i = 0; i < n; i++) {
    const pixel = { n: 0, min: Infinity, max: -Infinity, sum: 0 };
    const endNs = fromNs + ((i + 1) * (toNs - fromNs)) / n;
    all.forEach((data, k) => {
      const next = lowerBound(data.timeNs, endNs - data.shiftNs, at[k]);
      addRange(data, at[k], next, pixel);
      at[k] = next;
    });
    if (pixel.n === 0) continue;
    series.min[i] = pixel.min;
    series.max[i] = pixel.max;
    series.mean[i] = pixel.sum / pixel.n;
  }
  return series;
}

/** Share of the time in polls: of one lane, or the least, the most and the mean of several. */
export function sampleUtilisation(lods: LodData[], fromNs: number, toNs: number, pixels: number): Series {
  const series = empty('utilisation', 'share', fromNs, toNs, pixels);
  const n = series.timeNs.length;
  const widthNs = (toNs - fromNs) / n;
  for (let i = 0; i < n && lods.length > 0; i++) {
    let sum = 0;
    let min = Infinity;
    let max = -Infinity;
    for (const lod of lods) {
      const share = covered(lod, fromNs + i * widthNs, fromNs + (i + 1) * widthNs) / widthNs;
      sum += share;
      min = Math.min(min, share);
      max = Math.max(max, share);
    }
    series.min[i] = min;
    series.max[i] = max;
    series.mean[i] = sum / lods.length;
  }
  return series;
}
