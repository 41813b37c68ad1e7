// On a small screen a picture is wider than its frame. A text below then says so, and the names of
// the lanes stay in sight, whatever part of the picture is shown.

export function keepNames(picture) {
  const place = () => {
    const svg = picture.querySelector("svg");
    picture.classList.toggle("wide", svg !== null && picture.scrollWidth > picture.clientWidth);
    if (!svg) { return; }
    const unit = svg.viewBox.baseVal.width / svg.getBoundingClientRect().width;
    picture.style.setProperty("--scrolled", `${picture.scrollLeft * unit}px`);
    picture.classList.toggle("scrolled", picture.scrollLeft > 0);
  };
  picture.addEventListener("scroll", place, { passive: true });
  new ResizeObserver(place).observe(picture);
  // The caller calls this for each new picture.
  return () => {
    // The last element is on top, so the names of the lanes become the last ones.
    const act = picture.querySelector("svg > g");
    act?.append(...act.querySelectorAll(".lane"));
    place();
  };
}
