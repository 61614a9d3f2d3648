// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads state.json once a second and shows it. Counters in it only grow; rates come from two
// answers. Every text from the donor becomes a text node, never markup.
"use strict";
(() => {
	const INTERVAL_MS = 1000;
	const TRAFFIC_POINTS = 120;
	const LATENCY_POLLS = 10;
	const LINES_MAX = 200;
	const COLOURS = 8;
	const COLUMNS = 64;
	const SVG = "http://www.w3.org/2000/svg";
	const WIDTH = 640;
	const HEIGHT = 140;

	const byId = (id) => document.getElementById(id);
	const traffic = []; // {written, read} in bytes a second
	const earlier = []; // the last answers, the newest last
	let isPaused = false;
	let lastLine = 0;

	function scaled(value, step, units) {
		let unit = 0;
		while (value >= step && unit < units.length - 1) {
			value /= step;
			unit++;
		}
		return `${unit && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
	}
	const bytes = (n) => scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
	const duration = (ns) => scaled(ns, 1000, ["ns", "µs", "ms", "s"]);
	const count = (n) => n.toLocaleString("en");
	const percent = (part, whole) => `${(whole ? 100 * part / whole : 0).toFixed(1)} %`;

	// Of one thing in two answers a second apart.
	function rate(now, before, seconds) {
		return before === undefined || seconds <= 0 ? 0 : Math.max(0, now - before) / seconds;
	}

	function row(head, values, numbers) {
		const line = document.createElement("tr");
		const name = document.createElement("th");
		name.scope = "row";
		name.append(...head);
		line.append(name);
		values.forEach((value, at) => {
			const cell = document.createElement("td");
			cell.textContent = value;
			if (numbers.includes(at))
				cell.className = "number";
			line.append(cell);
		});
		return line;
	}

	function fill(id, rows, columns) {
		if (!rows.length) {
			const line = document.createElement("tr");
			const cell = document.createElement("td");
			cell.colSpan = columns;
			cell.textContent = "none";
			line.append(cell);
			rows = [line];
		}
		byId(id).replaceChildren(...rows);
	}

	function shape(name, attributes, text) {
		const element = document.createElementNS(SVG, name);
		for (const [key, value] of Object.entries(attributes))
			element.setAttribute(key, value);
		if (text !== undefined)
			element.textContent = text;
		return element;
	}

	const nameOf = (holder) => ({
		client: holder.name,
		left: "named regions of clients that have gone",
		application: "file system",
		zeroing: "being zeroed",
		others: `${count(holder.extents)} extents of others`,
	})[holder.kind];
	const colourOf = (holder, at) => holder.kind === "zeroing" ? "zeroing" : `h${at % COLOURS}`;

	function showMap(state) {
		const { donor, map, holders } = state;
		const side = WIDTH / COLUMNS;
		const cells = map.cells.map((at, i) => {
			const cell = shape("rect", {
				x: i % COLUMNS * side + 0.5, y: Math.floor(i / COLUMNS) * (side + 1) + 0.5,
				width: side - 1, height: side,
				class: at < 0 ? "free" : colourOf(holders[at], at),
			});
			cell.append(shape("title", {}, at < 0 ? "free" : nameOf(holders[at])));
			return cell;
		});
		const text = `${bytes(donor.lent_bytes)} of ${bytes(donor.limit_bytes)} are lent ` +
			`(${percent(donor.lent_bytes, donor.limit_bytes)}) to ${count(holders.length)} ` +
			`holders; a cell is ${bytes(map.cell_bytes)}`;
		byId("memory-text").textContent = `${text}. The machine has ` +
			`${bytes(donor.available_bytes)} available.`;
		byId("map").replaceChildren(...cells);
		byId("map").setAttribute("aria-label", `Memory map: ${text}. The table names them.`);
		fill("holders", holders.map((holder, at) => {
			const swatch = document.createElement("span");
			swatch.className = `swatch ${colourOf(holder, at)}`;
			return row([swatch, nameOf(holder)],
				[holder.kind === "others" ? "" : holder.tenant, holder.encryption ?? "",
					count(holder.extents), bytes(holder.bytes),
					percent(holder.bytes, donor.memory_bytes)], [2, 3, 4]);
		}), 6);
	}

	function line(values, top, name) {
		const step = WIDTH / (TRAFFIC_POINTS - 1);
		const from = TRAFFIC_POINTS - values.length;
		const points = values.map((value, i) =>
			`${((from + i) * step).toFixed(1)},${(HEIGHT - 2 - value / top * (HEIGHT - 22)).toFixed(1)}`);
		return shape("polyline", { points: points.join(" "), class: name });
	}

	function showTraffic(state, before, seconds) {
		const old = new Map((before?.sources ?? []).map((source) => [source.id, source]));
		let written = 0;
		let read = 0;
		fill("sources", state.sources.map((source) => {
			const was = old.get(source.id);
			const up = rate(source.written_bytes, was?.written_bytes, seconds);
			const down = rate(source.read_bytes, was?.read_bytes, seconds);
			if (source.in_total) {
				written += up;
				read += down;
			}
			return row([source.name], [
				"requests" in source ? count(Math.round(
					rate(source.requests, was?.requests, seconds))) : "",
				bytes(up), bytes(down), bytes(source.written_bytes),
				bytes(source.read_bytes)], [0, 1, 2, 3, 4]);
		}), 6);
		if (before)
			traffic.push({ written, read });
		traffic.splice(0, traffic.length - TRAFFIC_POINTS);
		const top = Math.max(1, ...traffic.map((at) => Math.max(at.written, at.read)));
		const text = `${bytes(written)}/s written, ${bytes(read)}/s read`;
		byId("traffic-text").textContent = `${text}; ` +
			`${count(state.donor.clients)} clients, ${count(state.donor.regions)} regions.`;
		byId("traffic-chart").setAttribute("aria-label", `Traffic: ${text} now; ` +
			`${bytes(top)}/s at most in the last two minutes`);
		byId("traffic-chart").replaceChildren(
			shape("rect", { x: 0.5, y: 18.5, width: WIDTH - 1, height: HEIGHT - 19, class: "frame" }),
			shape("text", { x: 0, y: 12 }, `${bytes(top)}/s`),
			line(traffic.map((at) => at.written), top, "written"),
			line(traffic.map((at) => at.read), top, "read"));
	}

	// Counts of the buckets since an earlier answer: [upper bound, count], by bound.
	function since(now, before) {
		const old = new Map(before ?? []);
		return now.map(([bound, n]) => [bound, n - (old.get(bound) ?? 0)]).filter(([, n]) => n > 0);
	}

	function quantile(buckets, fraction) {
		const total = buckets.reduce((sum, [, n]) => sum + n, 0);
		let seen = 0;
		for (const [bound, n] of buckets) {
			seen += n;
			if (seen >= fraction * total)
				return duration(bound);
		}
		return "";
	}

	function showLatency(state) {
		const old = new Map((earlier[0]?.sources ?? []).map((source) => [source.id, source]));
		const octaves = new Map();
		const rows = [];
		for (const source of state.sources) {
			for (const [kind, now] of Object.entries(source.latencies ?? {})) {
				const buckets = since(now, old.get(source.id)?.latencies?.[kind]);
				const total = buckets.reduce((sum, [, n]) => sum + n, 0);
				if (!total)
					continue;
				for (const [bound, n] of buckets) {
					const octave = Math.ceil(Math.log2(bound));
					octaves.set(octave, (octaves.get(octave) ?? 0) + n);
				}
				rows.push(row([source.name], [kind, count(total), quantile(buckets, 0.5),
					quantile(buckets, 0.99), quantile(buckets, 0.999)], [1, 2, 3, 4]));
			}
		}
		fill("latencies", rows, 6);
		showOctaves(octaves);
	}

	function showOctaves(octaves) {
		const keys = [...octaves.keys()];
		const first = Math.min(...keys);
		const places = keys.length ? Math.max(...keys) - first + 1 : 0;
		const width = Math.min(60, WIDTH / Math.max(1, places));
		const top = Math.max(1, ...octaves.values());
		const shapes = [];
		for (let i = 0; i < places; i++) {
			const height = (octaves.get(first + i) ?? 0) / top * (HEIGHT - 36);
			shapes.push(shape("rect", { x: i * width + 1, y: HEIGHT - 18 - height,
				width: width - 2, height, class: "bar" }));
			if (i % Math.ceil(places / 10) === 0)
				shapes.push(shape("text", { x: i * width + 1, y: HEIGHT - 4 },
					`≤ ${duration(2 ** (first + i))}`));
		}
		byId("latency-chart").replaceChildren(...shapes);
		byId("latency-chart").setAttribute("aria-label", keys.length ?
			`Latency: requests by duration, from ${duration(2 ** (first - 1))} to ` +
			`${duration(2 ** (first + places - 1))}. The table has the quantiles.` :
			"Latency: nothing measured in the last 10 seconds");
	}

	function showProof(state, before, seconds) {
		const { donor, path } = state;
		const sum = (answer, field) => answer?.sources.reduce(
			(total, source) => total + (source[field] ?? 0), 0);
		const fact = (name, value, per) => row([name], [value, per ?? ""], [1]);
		const counter = (name, now, was) => fact(name, count(now),
			count(Math.round(rate(now, was, seconds))));
		fill("proof", [
			fact("Device", `${donor.device}, ${path.kind}`),
			fact("Listens at", donor.address),
			fact("Memory", donor.huge_pages ? "huge pages" : "pages of the system's usual size"),
			counter("Requests of this host's sessions to this donor", sum(state, "requests"),
				sum(before, "requests")),
			counter("Work requests that the device did for them", sum(state, "work_requests"),
				sum(before, "work_requests")),
			counter("Writes that the donor's processor copied", donor.unloaded,
				before?.donor.unloaded),
			counter("Messages and calls that the donor's processor answered", donor.messages,
				before?.donor.messages),
			counter("Clients that joined", donor.joins, before?.donor.joins),
			counter("Clients rejected", donor.rejects, before?.donor.rejects),
		], 3);
	}

	function showLog(state) {
		const list = byId("lines");
		const isAtEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 4;
		for (const entry of state.log) {
			if (entry.number <= lastLine)
				continue;
			lastLine = entry.number;
			const item = document.createElement("li");
			item.className = entry.level;
			item.textContent = `${entry.time} ${entry.level} ${entry.text}`;
			list.append(item);
		}
		while (list.children.length > LINES_MAX)
			list.firstChild.remove();
		if (isAtEnd)
			list.scrollTop = list.scrollHeight;
	}

	function say(text, isLost) {
		if (byId("status").textContent !== text)
			byId("status").textContent = text;
		byId("status").className = isLost ? "lost" : "";
	}

	function show(state) {
		let before = earlier.at(-1);
		if (before && before.donor.incarnation !== state.donor.incarnation) {
			earlier.length = 0;
			before = undefined;
		}
		const seconds = before ? (state.monotonic_ns - before.monotonic_ns) / 1e9 : 0;
		document.title = `weir donor ${state.donor.address}`;
		byId("address").textContent = state.donor.address;
		byId("version").textContent = state.version;
		byId("pid").textContent = state.pid;
		showMap(state);
		showTraffic(state, before, seconds);
		showLatency(state);
		showProof(state, before, seconds);
		showLog(state);
		earlier.push(state);
		earlier.splice(0, earlier.length - LATENCY_POLLS);
	}

	async function poll() {
		if (!isPaused) {
			try {
				const answer = await fetch("state.json", { cache: "no-store" });
				if (!answer.ok)
					throw new Error(`status ${answer.status}`);
				show(await answer.json());
				say("Live", false);
			} catch (error) {
				say(`The donor does not answer: ${error.message}`, true);
			}
		}
		setTimeout(poll, INTERVAL_MS);
	}

	byId("pause").addEventListener("click", () => {
		isPaused = !isPaused;
		byId("pause").setAttribute("aria-pressed", String(isPaused));
		say(isPaused ? "Paused" : "Live", false);
	});
	poll();
})();
