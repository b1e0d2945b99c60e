function keep(input) {
  const wanted = input.value.toLowerCase(), rows = input.closest("p").nextElementSibling.tBodies[0].rows;
  for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
}
function only(text) {
  const input = document.querySelector("#facts input");
  input.value = text;
  keep(input);
  input.scrollIntoView();
}
function sort(button) {
  const cell = button.parentNode, body = cell.closest("table").tBodies[0], at = cell.cellIndex;
  const down = button.dataset.down = button.dataset.down === "1" ? "" : "1";
  const text = row => row.cells[at].textContent.trim();
  const rows = [...body.rows].sort((a, b) => text(a).localeCompare(text(b), undefined, { numeric: true }));
  body.append(...(down ? rows : rows.reverse()));
}
