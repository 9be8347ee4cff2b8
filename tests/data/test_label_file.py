"""Label names travel with the data, inside the archive or in labels.txt beside it."""

import pytest

from labelwood.data import Dataset, load, save
from labelwood.errors import FormatError, LabelwoodError
from labelwood.sparse import from_lists


@pytest.fixture
def path(tmp_path):
    (tmp_path / "a.txt").write_text("1 3 2\n1 0:1\n")
    return tmp_path / "a.txt"


def test_names_beside_the_data(path):
    assert load(path).label_names is None
    path.with_name("labels.txt").write_bytes("first one\r\nzweite ü\n".encode())
    assert load(path).label_names == ("first one", "zweite ü")
    assert load(path, label_names=False).label_names is None


def test_names_from_a_file(path, tmp_path):
    (tmp_path / "other.txt").write_text("x\ny")
    with_names = load(path, label_names=tmp_path / "other.txt")
    assert with_names.label_names == ("x", "y")


def test_names_count_the_labels_where_no_header_does(path):
    path.write_text("1 0:1\n")
    path.with_name("labels.txt").write_text("a\nb\nc\n")
    assert load(path).Y.n_cols == 3
    path.write_text("1 0:1\n3 0:1\n")
    with pytest.raises(FormatError, match="line 2: the label id '3' is past the last of 3 labels"):
        load(path)


def test_wrong_number_of_names(path):
    names = path.with_name("labels.txt")
    names.write_text("a\nb\nc\n")
    with pytest.raises(
        FormatError, match=r"labels.txt: holds 3 label names, but .*a.txt has 2 labels; label_names=False"
    ):
        load(path)
    names.write_text("")
    with pytest.raises(FormatError, match=r"labels.txt: the file is empty"):
        load(path)
    names.write_bytes(b"a\n\xff\n")
    with pytest.raises(FormatError, match=r"labels.txt, line 2: not UTF-8"):
        load(path)
    with pytest.raises(FormatError, match=r"none.txt: no such file"):
        load(path, label_names=path.with_name("none.txt"))


def test_saving_names(tmp_path):
    Y = from_lists([[0], [1]], 2)
    save(tmp_path / "a.txt", Dataset(Y, Y, ("x", "y")))
    assert (tmp_path / "labels.txt").read_text() == "x\ny\n"
    save(tmp_path / "b.txt", Dataset(Y, Y, ("x", "y")))
    with pytest.raises(LabelwoodError, match=r"labels.txt: holds the label names of another"):
        save(tmp_path / "c.txt", Dataset(Y, Y, ("x", "z")))
    assert not (tmp_path / "c.txt").exists()
    save(tmp_path / "c.npz", Dataset(Y, Y, ("x", "z")))
    assert load(tmp_path / "c.npz").label_names == ("x", "z")
    assert load(tmp_path / "c.npz", label_names=tmp_path / "labels.txt").label_names == ("x", "y")
    assert load(tmp_path / "c.npz", label_names=False).label_names is None
    with pytest.raises(LabelwoodError, match="a label name must not contain control characters, line breaks"):
        save(tmp_path / "d.npz", Dataset(Y, Y, ("x", "y\nz")))
    with pytest.raises(LabelwoodError, match="one name for each of the 2 labels; got 1"):
        save(tmp_path / "d.npz", Dataset(Y, Y, ("x",)))
