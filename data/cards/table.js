function keep(input) {
  const wanted = input.value.toLowerCase(), rows = input.closest("p").nextElementSibling.tBodies[0].rows;
  for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
}
function only(verdict) {
  const input = document.querySelector("#facts input"), rows = document.querySelector("#facts table").tBodies[0].rows;
  input.value = verdict;
  for (const row of rows) row.hidden = !row.lastElementChild.textContent.split("; ").includes(verdict);
  input.scrollIntoView();
}
function sort(button) {
  const cell = button.parentNode, body = cell.closest("table").tBodies[0], at = cell.cellIndex;
  const down = button.dataset.down = button.dataset.down === "1" ? "" : "1";
  const text = row => row.cells[at].textContent.trim();
  const rows = [...body.rows].sort((a, b) => text(a).localeCompare(text(b), undefined, { numeric: true }));
  body.append(...(down ? rows : rows.reverse()));
}
