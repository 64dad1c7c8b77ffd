/* Who may look, what is shown, and what moves by itself. */
import { T, WAIT, NO_JOB, run, moectl, check, need, until, lineIn, rowOf, shoot } from './rig.mjs';

export async function login(page) {
  await check('without a credential there is a sign-in form and no data', async () => {
    await page.locator('#login').waitFor({ timeout: WAIT });
    need(await page.locator('#jobs').isHidden(), 'the jobs table is shown');
    need(!(await page.content()).includes(T.jobs.train), 'data is on the page');
  });
  await shoot(page, '1-login');
  await check('a wrong token is refused in words', async () => {
    await page.fill('#token', 'not-a-token');
    await page.keyboard.press('Enter');
    await until(page, () =>
      document.getElementById('login-error').textContent.includes('not valid'),
    );
  });
  await check('a valid token opens the page', async () => {
    await page.fill('#token', T.token);
    await page.keyboard.press('Enter');
    await page.locator('#login').waitFor({ state: 'hidden', timeout: WAIT });
    run.signedIn = true;
  });
  await check(
    'the cookie is HttpOnly and SameSite=Strict; nothing is kept in storage',
    async () => {
      const cookies = await page.context().cookies();
      need(
        cookies.length === 1 && cookies[0].httpOnly && cookies[0].sameSite === 'Strict',
        JSON.stringify(cookies),
      );
      need(
        (await page.evaluate(() => localStorage.length + sessionStorage.length)) === 0,
        'storage is used',
      );
    },
  );
}

export async function shows(page) {
  await check('cluster line', () =>
    until(
      page,
      (t) =>
        document.getElementById('cluster').textContent.startsWith(`${t.nodes} nodes up`) &&
        document.getElementById('cluster').textContent.includes(`${t.gpus} GPUs`),
      T,
    ),
  );
  await check('the training job is listed, running', () =>
    until(
      page,
      (id) => document.querySelector(`#jobs tr[data-key="${id}"] .state-running`),
      T.jobs.train,
    ),
  );
  await check('choosing a job shows it', async () => {
    await page.click(`#jobs tr[data-key="${T.jobs.train}"] button`);
    await until(
      page,
      (id) => document.getElementById('job-title').textContent.startsWith(id + ' '),
      T.jobs.train,
    );
    need((await page.url()).endsWith('#' + T.jobs.train), 'the address does not name the job');
  });
  await check('the iteration moves without a reload', async () => {
    const before = (await rowOf(page, 'jobs', T.jobs.train))[5];
    await until(
      page,
      ([id, was]) =>
        document.querySelector(`#jobs tr[data-key="${id}"]`).cells[5].textContent !== was,
      [T.jobs.train, before],
    );
  });
  await check('charts have a line', async () => {
    for (const id of ['chart-loss', 'chart-step']) {
      await lineIn(page, id);
    }
  });
  await check('nodes are up with their GPUs', async () => {
    await until(page, (n) => document.querySelectorAll('#nodes tbody tr').length === n, T.nodes);
    const states = await page.locator('#nodes tbody td:nth-child(2)').allInnerTexts();
    need(
      states.every((s) => s === 'up'),
      states.join(' '),
    );
  });
  await check('ranks with node, pid and binding', async () => {
    const rows = await page.locator('#ranks tbody tr').allInnerTexts();
    need(rows.length === T.train_ranks && rows.every((r) => /running/.test(r)), rows.join(' / '));
  });
  await check('checkpoints of the job', () =>
    until(
      page,
      () =>
        document.querySelectorAll('#checkpoints .state-complete, #checkpoints .state-verified')
          .length > 0,
    ),
  );
  await check('GPU time adds up to the whole bar', async () => {
    const widths = await page.$$eval('#ledger rect', (rs) =>
      rs.map((r) => parseFloat(r.getAttribute('width'))),
    );
    need(
      widths.length > 0 && Math.abs(widths.reduce((a, b) => a + b, 0) - 1000) < 1,
      JSON.stringify(widths),
    );
  });
  await check('an incident is shown', () =>
    until(page, () => /attempt 1: .*; /.test(document.getElementById('incidents').textContent)),
  );
  await check('events of what happened before', () =>
    until(
      page,
      (id) => document.getElementById('events').textContent.includes('job.running ' + id),
      T.jobs.train,
    ),
  );
}

export async function live(page) {
  await check('a new job appears by its event', async () => {
    const id = JSON.parse(moectl('submit', T.short_recipe, '--json')).id;
    await until(
      page,
      (id) =>
        document.getElementById('events').textContent.includes('job.submitted ' + id) &&
        document.querySelector(`#jobs tr[data-key="${id}"]`),
      id,
    );
    await until(
      page,
      (id) => document.querySelector(`#jobs tr[data-key="${id}"] .state-completed`),
      id,
    );
  });
  await check('focus survives refreshes', async () => {
    await page.locator(`#jobs tr[data-key="${T.jobs.train}"] button`).focus();
    const mark = await page.evaluate(() => {
      document.activeElement.dataset.mark = 'x';
      return document.getElementById('jobs').innerText;
    });
    await until(page, (was) => document.getElementById('jobs').innerText !== was, mark);
    need(
      await page.evaluate(() => document.activeElement.dataset.mark === 'x'),
      'it went elsewhere',
    );
  });
  await check('what a rank prints stays text', async () => {
    await page.evaluate((id) => {
      location.hash = id;
    }, T.jobs.markup);
    await until(
      page,
      (id) => document.getElementById('job-title').textContent.startsWith(id + ' '),
      T.jobs.markup,
    );
    await until(page, () => document.body.textContent.includes('<img src=x onerror='));
    await until(page, () => !document.getElementById('job-evidence-box').hidden);
    need(
      await page.evaluate(() => !window.harmed && !document.querySelector('main img')),
      'markup became an element',
    );
  });
  await check('an unknown job in the address does no harm', async () => {
    await page.evaluate((id) => {
      location.hash = id;
    }, NO_JOB);
    await page.waitForResponse((r) => r.url().includes('/v1/jobs/' + NO_JOB), { timeout: WAIT });
    await until(page, () => document.querySelectorAll('#jobs tbody tr').length > 0);
    await page.evaluate((id) => {
      location.hash = id;
    }, T.jobs.train);
    await until(
      page,
      (id) => document.getElementById('job-title').textContent.startsWith(id + ' '),
      T.jobs.train,
    );
  });
}

/* Labels stand below a job's name; one pressed leaves the jobs that have it, and the address says
 * so. */
export async function labels(page) {
  const rows = (page) =>
    page.$$eval('#jobs tbody tr', (rs) => rs.map((r) => r.dataset.key).join(' '));
  const titled = (page, job) =>
    until(page, (id) => document.getElementById('job-title').textContent.startsWith(id + ' '), job);
  await check('labels of a job: one pressed leaves the jobs that have it', async () => {
    await page.click(`#jobs tr[data-key="${T.jobs.sweep}"] button:text-is("team=vision")`);
    await until(page, () => document.querySelector('#jobs tbody').rows.length === 1);
    need((await rows(page)) === T.jobs.sweep, await rows(page));
    const said = (await page.innerText('#jobs-label')).split(/\s+/).join(' ');
    need(said === 'Jobs labelled team=vision: 1 Show all jobs', said);
    need(page.url().endsWith('?label=team%3Dvision'), page.url());
  });
  await check('the address alone shows the same', async () => {
    const other = await page.context().newPage();
    await other.goto(page.url());
    await other.waitForSelector(`#jobs tr[data-key="${T.jobs.sweep}"] [aria-pressed=true]`);
    need((await rows(other)) === T.jobs.sweep, await rows(other));
    await other.close();
  });
  await check('an address with what is no label shows all, and its job', async () => {
    const other = await page.context().newPage(),
      label = encodeURIComponent('a b');
    await other.addInitScript(() => {
      new MutationObserver((list) => {
        if (list.some((m) => m.target.id === 'banner' && !m.target.hidden)) window.outage = true;
      }).observe(document, { subtree: true, attributeFilter: ['hidden'] });
    });
    await other.goto(`${T.url}/#${T.jobs.train}?label=${label}`);
    await other.waitForSelector(`#jobs tr[data-key="${T.jobs.train}"]`, { timeout: WAIT });
    need(await other.locator('#jobs-label').isHidden(), 'it is filtered by it');
    await titled(other, T.jobs.train);
    need(other.url().endsWith('#' + T.jobs.train), other.url());
    need(!(await other.evaluate(() => window.outage)), 'it says that the controller is silent');
    await other.close();
  });
  await check('an address with a label that no job has shows its job', async () => {
    const other = await page.context().newPage();
    await other.goto(`${T.url}/#${T.jobs.train}?label=${encodeURIComponent('team=nobody')}`);
    await titled(other, T.jobs.train);
    await other.waitForSelector('#jobs-label:not([hidden])', { timeout: WAIT });
    need((await rows(other)) === '', await rows(other));
    await other.close();
  });
  await check('pressed again all are there', async () => {
    await page.click(`#jobs tr[data-key="${T.jobs.sweep}"] button[aria-pressed=true]`);
    await page.waitForSelector(`#jobs tr[data-key="${T.jobs.train}"]`, { timeout: WAIT });
    need(await page.locator('#jobs-label').isHidden(), 'it says that they are not');
    need(!page.url().includes('label'), page.url());
  });
}
