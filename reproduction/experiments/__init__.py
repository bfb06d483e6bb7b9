"""The paper's figures and tables, in its order, and what its other sections say."""

from reproduction.experiments import (
    abstract,
    figure_cone,
    figure_free_initial,
    figure_lowrank_free_initial,
    figure_strong,
    figure_weak_s,
    figure_weak_t0,
    figures_lowrank_ranks,
    figures_weak_designs,
    rates,
    table_lowrank,
    table_sparse,
)
from reproduction.item import Item

ITEMS: dict[str, Item] = {
    item.name: item
    for item in (
        figure_cone.ITEM,
        figure_weak_t0.ITEM,
        figure_weak_s.ITEM,
        figure_free_initial.ITEM,
        table_sparse.ITEM,
        *figures_lowrank_ranks.ITEMS,
        table_lowrank.ITEM,
        figure_lowrank_free_initial.ITEM,
        *figures_weak_designs.ITEMS,
        figure_strong.ITEM,
        rates.ITEM,
        abstract.ITEM,
    )
}
