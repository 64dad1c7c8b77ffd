/* That everybody can use the page: what axe-core says of it, contrast of what is painted (axe does
 * not see a canvas), keys alone, paper, and who wants no motion. It has a browser context of its
 * own: only there the page's Content-Security-Policy is set aside, so that axe can be put in. */
import { fileURLToPath } from 'node:url';
import { T, WAIT, alter, check, lineIn, need, reload, shoot, until } from './rig.mjs';

const AXE = fileURLToPath(new URL('node_modules/axe-core/axe.min.js', import.meta.url)),
  SCHEMES = ['light', 'dark'],
  WIDTHS = [360, 1280, 3840];

/* All rules of axe but those that are experimental: WCAG 2.1 A and AA, and its best practices. Rows
 * that are scrolled away or below a sticky head have no contrast for axe, so it is asked for that
 * once more with everything laid open, where that is wide enough; what it then leaves undecided are
 * texts of one letter. */
async function axe(page, what, layOpen = true) {
  await check(`${what}: axe finds nothing`, async () => {
    if (!(await page.evaluate(() => !!window.axe))) await page.addScriptTag({ path: AXE });
    const found = await page.evaluate(async (layOpen) => {
      const named = (r) => `${r.id}: ${r.nodes.map((n) => n.target.join(' ')).slice(0, 5)}`,
        all = await axe.run(document);
      if (!layOpen) return { passes: all.passes.length, bad: all.violations.map(named) };
      document.body.classList.add('laid-open');
      const contrast = await axe.run(document, { runOnly: ['color-contrast'] });
      document.body.classList.remove('laid-open');
      const undecided = contrast.incomplete.map((r) => ({
        ...r,
        nodes: r.nodes.filter((n) => n.any[0]?.data?.messageKey !== 'shortTextContent'),
      }));
      return {
        passes: all.passes.length,
        bad: [...all.violations, ...contrast.violations].map(named),
        undecided: undecided.filter((r) => r.nodes.length > 0).map(named),
      };
    }, layOpen);
    need(found.passes > 20, `only ${found.passes} rules looked at something`);
    need(found.bad.length === 0, found.bad.join(' | '));
    need(!found.undecided?.length, `undecided: ${found.undecided?.join(' | ')}`);
  });
}

async function open(page, job) {
  await page.evaluate((id) => (location.hash = id), job);
  await until(page, (id) => document.getElementById('job-title').textContent.startsWith(id), job);
  await until(page, () => loading.now === false);
}

const unfold = (page, on) =>
  page.$$eval('details', (all, on) => all.forEach((d) => (d.open = on)), on);

/* Each job in both themes and three widths, at one of them with everything unfolded. */
async function everywhere(page) {
  for (const name of ['train', 'markup']) {
    await open(page, T.jobs[name]);
    for (const scheme of SCHEMES)
      for (const width of WIDTHS) {
        await page.emulateMedia({ colorScheme: scheme });
        await page.setViewportSize({ width, height: 900 });
        await unfold(page, width === 1280);
        if (name === 'train') await lineIn(page, 'chart-loss');
        await axe(page, `${name}, ${scheme}, ${width} px`, width === 1280);
        await shoot(page, `4-${name}-${scheme}-${width}`);
      }
  }
  await page.setViewportSize({ width: 1280, height: 900 });
}

/* Colours of an area of a canvas over the page's background, those of most pixels first:
 * [[r, g, b], pixels]. */
function coloursOf(page, selector, area) {
  return page.$eval(
    selector,
    (c, area) => {
      const copy = document.createElement('canvas'),
        ratio = devicePixelRatio,
        [x, y, w, h] = (area || [0, 0, c.width / ratio, c.height / ratio]).map((v) => v * ratio);
      copy.width = w;
      copy.height = h;
      const ctx = copy.getContext('2d');
      ctx.fillStyle = getComputedStyle(document.body).backgroundColor;
      ctx.fillRect(0, 0, w, h);
      ctx.drawImage(c, -x, -y);
      const d = ctx.getImageData(0, 0, w, h).data,
        seen = new Map();
      for (let i = 0; i < d.length; i += 4) {
        const key = `${d[i]} ${d[i + 1]} ${d[i + 2]}`;
        seen.set(key, (seen.get(key) || 0) + 1);
      }
      return [...seen].sort((a, b) => b[1] - a[1]).map(([k, n]) => [k.split(' ').map(Number), n]);
    },
    area,
  );
}

/* WCAG 2.1: relative luminance of sRGB, and contrast. */
function luminance(rgb) {
  const [r, g, b] = rgb.map((v) =>
    v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function contrast(a, b) {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}
const most = (colours) => Math.max(...colours.map(([c]) => contrast(c, colours[0][0])));

/* Two letters of a rank that is well and two of one that is lost. */
async function canvases(page) {
  await open(page, T.jobs.train);
  await alter(page, `**/v1/jobs/${T.jobs.train}/matrix*`, (doc) => ({
    ...doc,
    ranks: 4,
    sizes: null,
    letters: 'tsHC',
    legend: [...'tsHC'].map((letter) => ({ letter, name: `word ${letter}`, ranks: 1 })),
    worst: [],
  }));
  await reload(page);
  await until(page, () => heat.doc?.letters === 'tsHC');
  for (const scheme of SCHEMES) {
    await page.emulateMedia({ colorScheme: scheme });
    await lineIn(page, 'chart-loss');
    await check(`${scheme}: line and texts of a chart stand out of it`, async () => {
      const u = await page.evaluate(() => {
        const { bbox } = curve.plots['chart-loss'].u;
        return ['left', 'top', 'width', 'height'].map((k) => bbox[k] / devicePixelRatio);
      });
      const inside = most(await coloursOf(page, '#chart-loss canvas', u)),
        texts = most(await coloursOf(page, '#chart-loss canvas', [0, u[1], u[0] - 12, u[3]]));
      need(inside >= 3, `line: ${inside.toFixed(2)} to 1`);
      need(texts >= 4.5, `texts of the axis: ${texts.toFixed(2)} to 1`);
    });
    await check(`${scheme}: cells and letters of the picture of ranks stand out`, async () => {
      const at = await page.evaluate(() => ({ size: heat.cells.size, left: STAGE_LABEL })),
        cells = [];
      for (let k = 0; k < 4; k++)
        cells.push(
          await coloursOf(page, '#matrix', [at.left + k * at.size, 0, at.size - 1, at.size - 1]),
        );
      cells.forEach((c, k) => need(most(c) >= 4.5, `letter ${k}: ${most(c).toFixed(2)} to 1`));
      const lost = cells[2][0][0],
        well = contrast(lost, cells[0][0][0]),
        behind = contrast(lost, (await coloursOf(page, '#matrix', [0, 0, 20, 20]))[0][0]);
      need(well >= 3, `lost against well: ${well.toFixed(2)} to 1`);
      need(behind >= 3, `lost against the page: ${behind.toFixed(2)} to 1`);
    });
    await check(`${scheme}: parts of the bar of GPU time stand out`, async () => {
      const parts = await page.evaluate(() => CATEGORIES.map(([name, c]) => [name, c])),
        rgb = (c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16)),
        page_ = (await coloursOf(page, '#matrix', [0, 0, 20, 20]))[0][0],
        pale = parts.filter(([, c]) => contrast(rgb(c), page_) < 3);
      need(parts.length > 5 && pale.length === 0, pale.join(' '));
    });
  }
  await page.unrouteAll({ behavior: 'wait' });
  await page.emulateMedia({ colorScheme: 'light' });
  await reload(page);
}

/* Tab from the top to the end: what had the focus, each with its name and whether it was seen. */
async function walk(page) {
  await page.evaluate(() => {
    document.activeElement.blur();
    window.scrollTo(0, 0);
  });
  const seen = [];
  for (let i = 0; i < 80; i++) {
    await page.keyboard.press('Tab');
    const at = await page.evaluate(() => {
      const e = document.activeElement,
        r = e.getBoundingClientRect(),
        s = getComputedStyle(e);
      return {
        what: e === document.body ? '' : e.id || e.getAttribute('aria-labelledby') || e.tagName,
        shown: r.width > 0 && r.bottom > 0 && r.top < innerHeight && r.right > 0,
        framed: s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2,
      };
    });
    if (!at.what) break;
    seen.push(at);
  }
  return seen;
}

async function keys(page) {
  await open(page, T.jobs.train);
  await check('Tab comes to everything, each in view and framed, and out again', async () => {
    const seen = await walk(page),
      names = seen.map((s) => s.what),
      odd = seen.filter((s) => !s.shown || !s.framed);
    need(seen.length < 80, 'there is no way out');
    need(odd.length === 0, JSON.stringify(odd));
    for (const id of ['curve-other', 'curve-log', 'matrix-metric', 'matrix-walk', 'nodes-title'])
      need(names.includes(id), `${id} is not among ${names.join(' ')}`);
  });
  await check('Enter on a job shows it', async () => {
    await page.focus(`#jobs tr[data-key="${T.jobs.markup}"] button`);
    await page.keyboard.press('Enter');
    await until(
      page,
      (id) => document.getElementById('job-title').textContent.startsWith(id),
      T.jobs.markup,
    );
    await open(page, T.jobs.train);
  });
  await check('arrow keys walk the picture of ranks', async () => {
    await until(page, () => heat.job === state.job && heat.cells);
    await page.hover('#matrix', { position: { x: 50, y: 2 } });
    await page.focus('#matrix-walk');
    await page.keyboard.press('ArrowRight');
    await until(page, () => /^rank 0/.test(document.getElementById('matrix-point').textContent));
    for (const key of ['Home', 'ArrowRight', 'ArrowRight', 'ArrowLeft'])
      await page.keyboard.press(key);
    await until(page, () => /^rank 1/.test(document.getElementById('matrix-point').textContent));
    await page.keyboard.press('End');
    await until(
      page,
      (n) => document.getElementById('matrix-point').textContent.startsWith(`rank ${n - 1}`),
      T.train_ranks,
    );
    need(await page.locator('#matrix-mark').isVisible(), 'no frame');
  });
  const press = (init) =>
    page.evaluate((init) => {
      const ev = new KeyboardEvent('keydown', { ...init, bubbles: true, cancelable: true });
      return !document.getElementById('matrix-walk').dispatchEvent(ev);
    }, init);
  await check("arrow keys with a modifier are the browser's", async () => {
    for (const modifier of ['altKey', 'ctrlKey', 'metaKey'])
      need(!(await press({ key: 'ArrowLeft', [modifier]: true })), `${modifier}: it is swallowed`);
    need(await press({ key: 'ArrowLeft' }), 'without one it is not taken');
  });
  await check('arrow keys stay within what is drawn, also while newer ranks come', async () => {
    await page.evaluate(() => {
      const was = heat.doc;
      heat.doc = { ...was, ranks: 10 * was.ranks };
      walk(new KeyboardEvent('keydown', { key: 'End' }));
      heat.doc = was;
    });
    const told = await page.locator('#matrix-point').innerText();
    need(told.startsWith(`rank ${T.train_ranks - 1} `), told);
  });
}

/* What a canvas shows stands in tables too. */
async function tables(page) {
  await unfold(page, true);
  await check('the curves as a table: as many rows as points, the newest first', async () => {
    await until(page, () => {
      const rows = document.querySelectorAll('#curve-table tbody tr'),
        x = curve.plots['chart-loss'].u.data[0];
      return rows.length === x.length && Number(rows[0].dataset.key) === x[x.length - 1];
    });
  });
  await check('the picture of ranks as a table of its stages', async () => {
    await page.selectOption('#matrix-metric', 'step_ms');
    await until(page, () =>
      /^pp 0 0-3 least 4[0-9.]* ms, median/.test(
        [...document.querySelectorAll('#matrix-stages tbody td')].map((c) => c.innerText).join(' '),
      ),
    );
    await page.selectOption('#matrix-metric', 'doing');
  });
}

async function paper(page) {
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  await check('on paper: dark on white whatever the theme, tables whole', async () => {
    await lineIn(page, 'chart-loss');
    const [[back]] = await coloursOf(page, '#chart-loss canvas');
    need(luminance(back) > 0.9, `a chart on ${back}`);
    const cut = await page.$$eval('.scroll', (all) =>
      all.filter((e) => e.clientHeight > 0 && e.scrollHeight > e.clientHeight + 1).map((e) => e.id),
    );
    need(cut.length === 0 && (await page.locator('.tools').first().isHidden()), cut.join(' '));
  });
  await shoot(page, '5-print');
  await page.emulateMedia({ media: 'screen', colorScheme: 'light', reducedMotion: 'reduce' });
  await check('nothing is animated', async () => {
    need((await page.evaluate(() => document.getAnimations().length)) === 0, 'something moves');
    const moved = await page.evaluate(() =>
      [...document.querySelectorAll('*')]
        .filter((e) => getComputedStyle(e).transitionDuration !== '0s')
        .map((e) => e.tagName),
    );
    need(moved.length === 0, moved.join(' '));
  });
}

/* Without a credential, then with the cookie of `page`. */
export async function access(browser, page) {
  const context = await browser.newContext({ bypassCSP: true, colorScheme: 'light' }),
    mine = await context.newPage();
  await mine.goto(T.url + '/');
  await mine.addStyleTag({
    content: `.laid-open .scroll { max-height: none; overflow: visible; }
      .laid-open thead th { position: static; }`,
  });
  await mine.locator('#login').waitFor({ timeout: WAIT });
  for (const scheme of SCHEMES) {
    await mine.emulateMedia({ colorScheme: scheme });
    await axe(mine, `sign-in, ${scheme}`);
  }
  await context.addCookies(await page.context().cookies());
  await reload(mine);
  await mine.evaluate(() => start());
  await until(mine, () => document.querySelector('#jobs tbody tr'));
  await everywhere(mine);
  await canvases(mine);
  await keys(mine);
  await tables(mine);
  await paper(mine);
  await context.setOffline(true);
  await reload(mine);
  await mine.locator('#banner').waitFor({ timeout: WAIT });
  await axe(mine, 'banner');
  await context.close();
}
